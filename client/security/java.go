package security

import (
	_ "embed" // the names of Kafka's clients' settings
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// javaKeys are the settings of Kafka's Java clients that are copied as they are, by our key.
var javaKeys = map[string]string{
	"ssl.truststore.location":        "net.tls.trustStore.location",
	"ssl.truststore.password":        "net.tls.trustStore.password",
	"ssl.truststore.certificates":    "net.tls.trustStore.certificates",
	"ssl.keystore.location":          "net.tls.keyStore.location",
	"ssl.keystore.password":          "net.tls.keyStore.password",
	"ssl.keystore.certificate.chain": "net.tls.keyStore.certificateChain",
	"ssl.keystore.key":               "net.tls.keyStore.key",
	"ssl.key.password":               "net.tls.keyStore.keyPassword",
}

// javaSpecial are those that are translated.
var javaSpecial = map[string]func(*javaFile, property){
	"bootstrap.servers":                                 (*javaFile).bootstrap,
	"security.protocol":                                 nothing, // looked at first
	"sasl.mechanism":                                    nothing, // with the protocol
	"sasl.jaas.config":                                  nothing, // with the mechanism
	"ssl.truststore.type":                               (*javaFile).storeType,
	"ssl.keystore.type":                                 (*javaFile).storeType,
	"ssl.endpoint.identification.algorithm":             (*javaFile).endpointIdentification,
	"ssl.enabled.protocols":                             (*javaFile).enabledProtocols,
	"sasl.login.callback.handler.class":                 (*javaFile).loginHandler,
	"sasl.client.callback.handler.class":                (*javaFile).javaCode,
	"sasl.login.class":                                  (*javaFile).javaCode,
	"ssl.engine.factory.class":                          (*javaFile).javaCode,
	"config.providers":                                  (*javaFile).javaCode,
	"sasl.oauthbearer.token.endpoint.url":               nothing, // with the mechanism
	"sasl.oauthbearer.client.credentials.client.id":     nothing,
	"sasl.oauthbearer.client.credentials.client.secret": nothing,
	"sasl.oauthbearer.scope":                            nothing,
	"sasl.oauthbearer.header.urlencode":                 nothing,
}

func nothing(*javaFile, property) {}

//go:embed javanames.txt
var javaNamesText string

// javaNames are all settings of Kafka's producer, consumer and admin client; testdata/java has the
// program that lists them.
var javaNames = strings.Fields(javaNamesText)

// javaName is what one of our keys is called in a properties file; empty when there is no such.
func javaName(key string) string {
	for java, ours := range javaKeys {
		if ours == key {
			return java
		}
	}
	switch key {
	case "net.sasl.mechanism":
		return "sasl.mechanism"
	case "net.sasl.user", "net.sasl.password", "net.sasl.unsecured.subject":
		return "sasl.jaas.config"
	}
	return ""
}

// javaFile is a properties file being translated.
type javaFile struct {
	r      *reader
	name   string
	values map[string]property
	login  jaas
}

// readJava translates a properties file.
func (r *reader) readJava(name string, data []byte) {
	r.java = true
	all, wrong := parseProperties(data)
	for _, w := range wrong {
		r.problems = append(r.problems, settings.Problem{File: name, Line: w.line, Column: 1, Text: "this line " + w.text})
	}
	f := &javaFile{r: r, name: name, values: map[string]property{}}
	var ignored []property
	for _, p := range all {
		f.values[p.key] = p // the last one counts, as in Java
		switch {
		case javaKeys[p.key] != "", javaSpecial[p.key] != nil:
		case slices.Contains(javaNames, p.key):
			ignored = append(ignored, p)
		default:
			f.unknown(p)
		}
	}
	for _, p := range ignored {
		r.others = append(r.others, Property{Name: p.key, Value: p.value, File: name, Line: p.line, Lenient: true})
	}
	f.warnIgnored(ignored)
	if len(r.problems) > 0 {
		return
	}
	f.translate()
}

// unknown refuses a key. It is quoted only if it is nearly one: others may be a piece of a key or a
// password whose line went wrong.
func (f *javaFile) unknown(p property) {
	problem := settings.Problem{File: f.name, Line: p.line, Column: 1}
	if near := nearestName(p.key, f.known()); near != "" {
		problem.Key, problem.Text = p.key, "unknown setting; did you mean "+near+"?"
	} else {
		problem.Text = "this is no setting of a Kafka client; a value that goes on in the next line needs a backslash at the end, and a YAML file a name that ends in .yaml"
	}
	f.r.problems = append(f.r.problems, problem)
}

// nearestName looks at names as a whole: the parts of Java's say little by themselves.
func nearestName(key string, among []string) string {
	whole := func(s string) string { return strings.ReplaceAll(s, ".", "_") }
	parts := make([]string, 0, len(among))
	for _, name := range among {
		parts = append(parts, whole(name))
	}
	if i := slices.Index(parts, settings.Nearest(whole(key), parts)); i >= 0 {
		return among[i]
	}
	return ""
}

// known are all names, ours first, so that they win among equals.
func (f *javaFile) known() []string {
	var names []string
	for name := range javaKeys {
		names = append(names, name)
	}
	for name := range javaSpecial {
		names = append(names, name)
	}
	for name := range javaClient {
		names = append(names, name)
	}
	slices.Sort(names)
	return append(names, javaNames...)
}

// warnIgnored names what other clients take from such a file.
func (f *javaFile) warnIgnored(ps []property) {
	if len(ps) == 0 {
		return
	}
	var names []string
	var at []int
	for _, p := range ps {
		names, at = append(names, p.key), append(at, p.line)
	}
	f.r.ignored = fmt.Sprintf("%s: only what is about brokers, TLS and SASL is used, and not %s (%s); set what you need of it in the workload or by --set",
		f.name, strings.Join(names, ", "), lines(at))
	f.r.warnings = append(f.r.warnings, f.r.ignored)
}

func (r *reader) warn(format string, a ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, a...))
}

// problem refuses a property.
func (f *javaFile) problem(p property, format string, a ...any) {
	f.r.problems = append(f.r.problems, settings.Problem{
		File: f.name, Line: p.line, Column: 1, Key: p.key, Text: fmt.Sprintf(format, a...),
	})
}

// set gives one of our keys the value that a property means.
func (f *javaFile) set(key string, p property, value any) {
	f.r.set(key, settings.Of(value), place{file: f.name, line: p.line, column: 1, name: p.key})
}

// translate goes by the protocol, as Kafka does: what belongs to another is not looked at.
func (f *javaFile) translate() {
	protocol, ok := f.values["security.protocol"]
	name := strings.ToUpper(strings.TrimSpace(protocol.value))
	switch name {
	case "":
		name = "PLAINTEXT"
	case "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL":
	default:
		f.problem(protocol, "is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
		return
	}
	withTLS, withSASL := strings.HasSuffix(name, "SSL"), strings.HasPrefix(name, "SASL_")
	if !ok {
		f.warnUnused()
	}
	f.set("net.tls.enabled", protocol, withTLS)
	if withSASL {
		f.sasl(protocol)
	} else {
		f.r.given["net.sasl.mechanism"] = place{file: f.name, line: protocol.line, column: 1, name: "security.protocol"}
	}
	for name, p := range f.values {
		if !withTLS && strings.HasPrefix(name, "ssl.") {
			continue
		}
		if ours := javaKeys[name]; ours != "" && p.value != "" {
			f.set(ours, p, p.value)
		}
		if special := javaSpecial[name]; special != nil {
			special(f, p)
		}
	}
}

// warnUnused: without a protocol Kafka's clients speak plaintext, whatever else is there.
func (f *javaFile) warnUnused() {
	for name := range f.values {
		if strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.") {
			f.r.warn("%s: security.protocol is not given, so that TLS and SASL are not used, as in Kafka's own clients", f.name)
			return
		}
	}
}

func (f *javaFile) bootstrap(p property) {
	for address := range strings.SplitSeq(p.value, ",") {
		if address = strings.TrimSpace(address); address != "" {
			f.r.keys.Brokers = append(f.r.keys.Brokers, address)
		}
	}
}

// storeType takes any case, as Java does.
func (f *javaFile) storeType(p property) {
	kind := strings.ToUpper(strings.TrimSpace(p.value))
	if !slices.Contains([]string{"PEM", "PKCS12", "JKS"}, kind) {
		f.problem(p, "is none of PEM, PKCS12, JKS")
		return
	}
	f.set(map[string]string{"ssl.truststore.type": "net.tls.trustStore.type", "ssl.keystore.type": "net.tls.keyStore.type"}[p.key], p, kind)
}

func (f *javaFile) endpointIdentification(p property) {
	switch strings.ToLower(strings.TrimSpace(p.value)) {
	case "https":
	case "":
		f.set("net.tls.verifyHostname", p, false)
	default:
		f.problem(p, "is neither https nor empty")
	}
}

// enabledProtocols gives the oldest version; there is no way to leave out one in the middle.
func (f *javaFile) enabledProtocols(p property) {
	versions := strings.FieldsFunc(p.value, func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case slices.Contains(versions, "TLSv1.2"):
	case slices.Contains(versions, "TLSv1.3"):
		f.set("net.tls.minVersion", p, "1.3")
	default:
		f.problem(p, "holds neither TLSv1.2 nor TLSv1.3; older versions are not spoken")
	}
}

// javaCode is what only a JVM can run.
func (f *javaFile) javaCode(p property) {
	if p.value != "" {
		f.problem(p, "names Java code, which cannot be run here; a token can come from a program: net.sasl.tokenCommand in a .yaml file")
	}
}
