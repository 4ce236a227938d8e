package security

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kbench/kbench/client/settings"
)

const kafkaSecurity = "org.apache.kafka.common.security."

// javaModules are the login modules by mechanism.
var javaModules = map[string]string{
	"PLAIN":         kafkaSecurity + "plain.PlainLoginModule",
	"SCRAM-SHA-256": kafkaSecurity + "scram.ScramLoginModule",
	"SCRAM-SHA-512": kafkaSecurity + "scram.ScramLoginModule",
	"OAUTHBEARER":   kafkaSecurity + "oauthbearer.OAuthBearerLoginModule",
}

// sasl translates mechanism and login module.
func (f *javaFile) sasl(protocol property) {
	mechanism, given := f.values["sasl.mechanism"]
	name := strings.TrimSpace(mechanism.value)
	if !given {
		f.problem(protocol, "%s needs sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER", protocol.value)
		return
	}
	module, known := javaModules[name]
	if !known {
		f.problem(mechanism, "is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER")
		return
	}
	f.set("net.sasl.mechanism", mechanism, name)
	line, given := f.values["sasl.jaas.config"]
	if !given {
		return // user and password may be in the environment
	}
	var err error
	if f.login, err = parseJAAS(line.value); err != nil {
		f.problem(line, "%v", err)
		return
	}
	if f.login.module != module {
		f.problem(line, "%s needs the login module %s", name, module)
		return
	}
	if name == "OAUTHBEARER" {
		f.oauth(line)
		return
	}
	f.password(line)
}

// password takes the options of the modules of PLAIN and SCRAM.
func (f *javaFile) password(line property) {
	for _, option := range sortedOptions(f.login.options) {
		value := f.login.options[option]
		switch option {
		case "username":
			f.set("net.sasl.user", line, value)
		case "password":
			f.set("net.sasl.password", line, value)
		case "serviceName":
		case "tokenauth":
			if value == "true" {
				f.problem(line, "tokenauth (delegation tokens) is not supported")
			}
		default:
			f.unknownOption(line, option, []string{"username", "password"})
		}
	}
}

func sortedOptions(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// unknownOption repeats the option's name only if it is nearly one: after a quote that went wrong
// it may be a piece of a password.
func (f *javaFile) unknownOption(line property, option string, known []string) {
	if near := settings.Nearest(option, known); near != "" {
		f.problem(line, "the login module has no option %s; did you mean %s?", option, near)
		return
	}
	f.problem(line, "holds an option that the login module does not have; it has %s", strings.Join(known, ", "))
}

// Handlers of OAUTHBEARER that we know: the one that makes unsecured tokens is Kafka's default.
const (
	handlerUnsecured = kafkaSecurity + "oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
	handlerOIDC      = kafkaSecurity + "oauthbearer.OAuthBearerLoginCallbackHandler"
	handlerOIDCOld   = kafkaSecurity + "oauthbearer.secured.OAuthBearerLoginCallbackHandler"
)

func (f *javaFile) loginHandler(p property) {
	switch p.value {
	case "", handlerUnsecured, handlerOIDC, handlerOIDCOld:
	default:
		f.javaCode(p)
	}
}

// oauth takes the options of the module of OAUTHBEARER.
func (f *javaFile) oauth(line property) {
	if _, endpoint := f.values["sasl.oauthbearer.token.endpoint.url"]; endpoint {
		f.oidc(line)
		return
	}
	if handler := f.values["sasl.login.callback.handler.class"]; handler.value == handlerOIDC || handler.value == handlerOIDCOld {
		f.problem(handler, "needs sasl.oauthbearer.token.endpoint.url")
		return
	}
	f.unsecured(line)
}

// oidc: client credentials, or a token in a file.
func (f *javaFile) oidc(line property) {
	url := f.values["sasl.oauthbearer.token.endpoint.url"]
	if path, file := strings.CutPrefix(url.value, "file:"); file {
		f.set("net.sasl.tokenFile", url, "/"+strings.TrimLeft(path, "/"))
	} else {
		f.set("net.sasl.oidc.tokenEndpoint", url, url.value)
	}
	for java, ours := range map[string]string{
		"sasl.oauthbearer.client.credentials.client.id":     "net.sasl.oidc.clientID",
		"sasl.oauthbearer.client.credentials.client.secret": "net.sasl.oidc.clientSecret",
		"sasl.oauthbearer.scope":                            "net.sasl.oidc.scope",
	} {
		if p, ok := f.values[java]; ok {
			f.set(ours, p, p.value)
		}
	}
	f.r.keys.Net.SASL.OIDC.raw = !strings.EqualFold(f.values["sasl.oauthbearer.header.urlencode"].value, "true")
	options := map[string]string{
		"clientId": "net.sasl.oidc.clientID", "clientSecret": "net.sasl.oidc.clientSecret", "scope": "net.sasl.oidc.scope",
	}
	extensions := map[string]string{}
	for _, option := range sortedOptions(f.login.options) {
		value := f.login.options[option]
		if name, ok := strings.CutPrefix(option, "extension_"); ok {
			extensions[name] = value
		} else if ours := options[option]; ours != "" {
			f.set(ours, line, value)
		} else {
			f.unknownOption(line, option, sortedOptions(options))
		}
	}
	f.extensions(line, extensions)
}

func (f *javaFile) extensions(line property, all map[string]string) {
	if len(all) > 0 {
		f.r.keys.Net.SASL.Extensions = all
		f.r.given["net.sasl.extensions"] = place{file: f.name, line: line.line, column: 1, name: line.key}
	}
}

// unsecured takes the options of Kafka's handler for unsecured tokens (KIP-255).
func (f *javaFile) unsecured(line property) {
	u := &f.r.keys.Net.SASL.Unsecured
	u.claims = map[string]any{}
	principal, extensions := "sub", map[string]string{}
	for _, option := range sortedOptions(f.login.options) {
		value := f.login.options[option]
		kind, name, _ := strings.Cut(option, "_")
		switch kind {
		case "unsecuredLoginStringClaim":
			f.claim(line, name, value)
		case "unsecuredLoginNumberClaim":
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				f.problem(line, "the option %s is not a number", kind)
				continue
			}
			f.claim(line, name, n)
		case "unsecuredLoginListClaim":
			f.claim(line, name, listClaim(value))
		case "unsecuredLoginExtension":
			extensions[name] = value
		case "unsecuredLoginPrincipalClaimName":
			principal = value
		case "unsecuredLoginLifetimeSeconds":
			f.lifetime(line, value)
		case "unsecuredLoginScopeClaimName":
		default:
			f.unknownOption(line, option, []string{"unsecuredLoginStringClaim_sub", "unsecuredLoginLifetimeSeconds"})
		}
	}
	f.extensions(line, extensions)
	subject, _ := u.claims[principal].(string)
	if subject == "" {
		f.problem(line, "has no user: unsecuredLoginStringClaim_%s=\"…\" is needed, or sasl.oauthbearer.token.endpoint.url", principal)
		return
	}
	f.set("net.sasl.unsecured.subject", line, subject)
}

func (f *javaFile) claim(line property, name string, value any) {
	if name == "" || name == "iat" || name == "exp" {
		f.problem(line, "a claim without a name, iat and exp cannot be set")
		return
	}
	f.r.keys.Net.SASL.Unsecured.claims[name] = value
}

// listClaim splits at the first letter: "|a|b".
func listClaim(value string) []string {
	if value == "" {
		return []string{}
	}
	_, n := utf8.DecodeRuneInString(value)
	return strings.Split(value[n:], value[:n])
}

func (f *javaFile) lifetime(line property, value string) {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || !(seconds > 0) || seconds > 1e9 {
		f.problem(line, "the option unsecuredLoginLifetimeSeconds is not a number of seconds")
		return
	}
	f.r.keys.Net.SASL.Unsecured.Lifetime = time.Duration(seconds * float64(time.Second))
}
