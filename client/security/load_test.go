package security

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
)

// canary is every secret of these tests.
const canary = "c4n4ry-S3cret"

// written is a file with a text in a folder of the test's own.
func written(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// loadText loads a text as a file of that name.
func loadText(t *testing.T, name, text string, environ ...string) (*Settings, error) {
	return Load(written(t, name, text), environ)
}

const jaasPlain = "org.apache.kafka.common.security.plain.PlainLoginModule required "

func TestLoad(t *testing.T) {
	for _, row := range []struct {
		name, file, text string
		environ          []string
		want             string // Settings.String
		password         string
		brokers          []string
	}{
		{"nothing at all", "", "", nil, "PLAINTEXT", "", nil},
		{"an empty file", "a.yaml", "", nil, "PLAINTEXT", "", nil},
		{"YAML: TLS alone", "a.yaml", "net: {tls: {enabled: true}}", nil, "SSL", "", nil},
		{"YAML: a key of TLS says TLS", "a.yml", "net.tls.verifyHostname: false", nil, "SSL", "", nil},
		{"YAML: TLS switched off", "a.yaml", "net: {tls: {enabled: false, serverName: x}}", nil, "PLAINTEXT", "", nil},
		{"YAML: SASL and TLS", "a.yaml", "net:\n  tls: {enabled: true}\n  sasl:\n    mechanism: SCRAM-SHA-512\n    user: alice\n    password: " + canary, nil, "SASL_SSL SCRAM-SHA-512 as alice", canary, nil},
		{"YAML: brokers", "a.yaml", "brokers: [a:1, b:2]", nil, "PLAINTEXT", "", []string{"a:1", "b:2"}},
		{"YAML: a password that looks like a number", "a.yaml", "net: {sasl: {mechanism: PLAIN, user: 1, password: 0123}}", nil, "SASL_PLAINTEXT PLAIN as 1", "0123", nil},
		{"the environment alone", "", "", []string{"KBENCH_SASL_MECHANISM=SCRAM-SHA-256", "KBENCH_SASL_USER=bob", "KBENCH_SASL_PASSWORD=" + canary, "KBENCH_TLS_ENABLED=true"}, "SASL_SSL SCRAM-SHA-256 as bob", canary, nil},
		{"the password from the environment", "a.yaml", "net: {sasl: {mechanism: PLAIN, user: alice}}", []string{"KBENCH_SASL_PASSWORD=a=b " + canary}, "SASL_PLAINTEXT PLAIN as alice", "a=b " + canary, nil},
		{"the file goes before the environment", "a.yaml", "net: {sasl: {mechanism: PLAIN, user: alice, password: file}}", []string{"KBENCH_SASL_PASSWORD=environment", "KBENCH_SASL_USER=bob"}, "SASL_PLAINTEXT PLAIN as alice", "file", nil},
		{"a password in the environment alone says nothing", "", "", []string{"KBENCH_SASL_PASSWORD=x", "KBENCH_TLS_KEYSTORE_PASSWORD=x"}, "PLAINTEXT", "", nil},
		{"an empty variable is none", "", "", []string{"KBENCH_SASL_MECHANISM="}, "PLAINTEXT", "", nil},
		{"Java: no protocol is plaintext", "a.properties", "bootstrap.servers=a:1, b:2,", nil, "PLAINTEXT", "", []string{"a:1", "b:2"}},
		{"Java: SSL", "client", "security.protocol=SSL", nil, "SSL", "", nil},
		{"Java: PLAIN", "c.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=" + jaasPlain + `username="alice" password="` + canary + `";`, nil, "SASL_PLAINTEXT PLAIN as alice", canary, nil},
		{"Java: the protocol in small letters", "c.properties", "security.protocol=sasl_ssl\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password=" + canary + ";", nil, "SASL_SSL SCRAM-SHA-256 as alice", canary, nil},
		{"Java: what belongs to another protocol is not looked at", "c.properties", "security.protocol=PLAINTEXT\nssl.truststore.location=/none\nsasl.mechanism=GSSAPI", nil, "PLAINTEXT", "", nil},
		{"Java: the file says no SASL, whatever the environment", "c.properties", "security.protocol=SSL", []string{"KBENCH_SASL_MECHANISM=PLAIN", "KBENCH_SASL_USER=x", "KBENCH_SASL_PASSWORD=x"}, "SSL", "", nil},
		{"Java: the password from the environment", "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=" + jaasPlain + "username=alice;", []string{"KBENCH_SASL_PASSWORD=" + canary}, "SASL_SSL PLAIN as alice", canary, nil},
		{"Java: user and password from the environment", "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", []string{"KBENCH_SASL_USER=alice", "KBENCH_SASL_PASSWORD=" + canary}, "SASL_SSL PLAIN as alice", canary, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := ""
			if row.file != "" {
				file = written(t, row.file, row.text)
			}
			s, err := Load(file, row.environ)
			require.NoError(t, err)
			require.Equal(t, row.want, s.String())
			require.Equal(t, row.brokers, s.Brokers)
			cfg := client.NewConfig()
			s.Apply(cfg)
			require.NoError(t, cfg.Validate())
			require.Equal(t, row.password, cfg.Net.SASL.Password)
			require.Equal(t, strings.Contains(s.Protocol(), "SSL"), cfg.Net.TLS != nil)
			require.Equal(t, s.Mechanism(), cfg.Net.SASL.Mechanism)
			for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				require.NotContains(t, fmt.Sprintf(format, s), canary)
			}
		})
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	scram := "org.apache.kafka.common.security.scram.ScramLoginModule required "
	oauth := "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
	plain := "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config="
	for _, row := range []struct {
		name, file, text string
		environ          []string
		want             []string // a line each, FILE for the file's path
	}{
		{"a file that is not there", "/no/such/file.yaml", "", nil, []string{"/no/such/file.yaml: cannot be read: no such file or directory"}},
		{"a folder", "/", "", nil, []string{"/: cannot be read: is a directory"}},
		{"YAML: a mistyped key", "a.yaml", "net:\n  sasl:\n    mechanism: PLAIN\n    user: u\n    pasword: " + canary, nil, []string{
			"FILE:5:5: net.sasl.pasword: unknown key; did you mean net.sasl.password?"}},
		{"YAML: a key of the client", "a.yaml", "producer:\n  requiredAcks: 1\nnet.maxOpenRequests: 5", nil, []string{
			"FILE:1:1: producer: is not about how to connect; it belongs in the workload, or after --set",
			"FILE:3:1: net.maxOpenRequests: is not about how to connect; it belongs in the workload, or after --set"}},
		{"YAML: a mechanism that is none", "a.yaml", "net: {sasl: {mechanism: SCRAM-SHA-1, user: u, password: p}}", nil, []string{
			`FILE:1:25: net.sasl.mechanism: "SCRAM-SHA-1" is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; did you mean SCRAM-SHA-512?`}},
		{"YAML: no mechanism", "a.yaml", "net: {sasl: {user: u}}", nil, []string{
			"FILE: net.sasl.mechanism: is missing: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"}},
		{"YAML: neither user nor password", "a.yaml", "net: {sasl: {mechanism: PLAIN}}", nil, []string{
			"FILE: net.sasl.user: PLAIN needs a user, here or as KBENCH_SASL_USER",
			"FILE: net.sasl.password: PLAIN needs a password, here or as KBENCH_SASL_PASSWORD"}},
		{"YAML: a password that is a list", "a.yaml", "net: {sasl: {mechanism: PLAIN, user: u, password: [" + canary + "]}}", nil, []string{
			"FILE:1:51: net.sasl.password: the value given cannot be used: a text is needed"}},
		{"YAML: what is not YAML is not shown", "a.yaml", "password " + canary, nil, []string{
			"FILE:1:1: this cannot be read as YAML: keys with their values are needed, indented by spaces"}},
		{"YAML: a tab", "a.yaml", "net:\n\tpassword: " + canary, nil, []string{
			"FILE:2:1: this cannot be read as YAML: keys with their values are needed, indented by spaces"}},
		{"YAML: a token with PLAIN is refused as none is there", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, user: u}}", nil, []string{
			"FILE:1:25: net.sasl.mechanism: OAUTHBEARER needs a source of tokens: net.sasl.token, net.sasl.tokenFile, net.sasl.tokenCommand, net.sasl.unsecured.subject, net.sasl.oidc.tokenEndpoint"}},
		{"YAML: two sources of tokens", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, token: " + canary + ", tokenFile: x}}", nil, []string{
			"FILE:1:71: net.sasl.tokenFile: one source of tokens is possible, and several are given: net.sasl.token, net.sasl.tokenFile"}},
		{"YAML: a program that is not there", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, tokenCommand: [/no/such]}}", nil, []string{
			"FILE:1:52: net.sasl.tokenCommand: the program /no/such cannot be run: it is not there, or not executable"}},
		{"YAML: an extension that cannot be sent", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, token: x, extensions: {auth: x}}}", nil, []string{
			"FILE:1:60: net.sasl.extensions: an extension has a name of letters alone, not auth, and a value of printable ASCII (RFC 7628)"}},
		{"YAML: a token endpoint that is no URL, and no secret", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, oidc: {tokenEndpoint: nowhere}}}", nil, []string{
			"FILE:1:60: net.sasl.oidc.tokenEndpoint: is not a URL such as https://login.example.com/oauth2/token"}},
		{"YAML: a secret in the URL", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, oidc: {tokenEndpoint: 'https://u:" + canary + "@h/'}}}", nil, []string{
			"FILE:1:60: net.sasl.oidc.tokenEndpoint: holds a user or a password; give them as net.sasl.oidc.clientID and net.sasl.oidc.clientSecret"}},
		{"YAML: a token endpoint without credentials", "a.yaml", "net: {sasl: {mechanism: OAUTHBEARER, oidc: {tokenEndpoint: 'https://h/'}}}", nil, []string{
			"FILE: net.sasl.oidc.clientID: OAUTHBEARER needs it for a token endpoint, here or as KBENCH_SASL_OIDC_CLIENTID",
			"FILE: net.sasl.oidc.clientSecret: OAUTHBEARER needs it for a token endpoint, here or as KBENCH_SASL_OIDC_CLIENTSECRET"}},

		{"a variable that is none", "", "", []string{"KBENCH_SASL_PASWORD=" + canary}, []string{
			"$KBENCH_SASL_PASWORD: unknown variable; did you mean KBENCH_SASL_PASSWORD?"}},
		{"a variable with a wrong value", "", "", []string{"KBENCH_TLS_ENABLED=perhaps"}, []string{
			`$KBENCH_TLS_ENABLED: true or false is needed, not "perhaps"`}},
		{"a mechanism from the environment without the rest", "", "", []string{"KBENCH_SASL_MECHANISM=PLAIN"}, []string{
			"net.sasl.user: PLAIN needs a user, here or as KBENCH_SASL_USER",
			"net.sasl.password: PLAIN needs a password, here or as KBENCH_SASL_PASSWORD"}},

		{"Java: a mistyped setting", "c.properties", "security.protocol=SSL\n\nssl.trustore.location=/x", nil, []string{
			"FILE:3:1: ssl.trustore.location: unknown setting; did you mean ssl.truststore.location?"}},
		{"Java: a setting that is nothing like one", "c.properties", "my.own.setting=1", nil, []string{
			"FILE:1:1: this is no setting of a Kafka client; a value that goes on in the next line needs a backslash at the end, and a YAML file a name that ends in .yaml"}},
		{"Java: a line that is no setting is not shown", "c.properties", "security.protocol=SSL\nssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg" + canary + "==\n", nil, []string{
			"FILE:3:1: this is no setting of a Kafka client; a value that goes on in the next line needs a backslash at the end, and a YAML file a name that ends in .yaml"}},
		{"Java: a lone word is not shown", "c.properties", "c4n4ry", nil, []string{
			"FILE:1:1: this is no setting of a Kafka client; a value that goes on in the next line needs a backslash at the end, and a YAML file a name that ends in .yaml"}},
		{"Java: letters in UTF-8", "c.properties", "\nsasl.jaas.config=ü" + canary, nil, []string{
			`FILE:2:1: this line holds letters in UTF-8, which Java reads as others; write them as \uXXXX`}},
		{"Java: a protocol that is none", "c.properties", "security.protocol=TLS", nil, []string{
			"FILE:1:1: security.protocol: is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"}},
		{"Java: no mechanism", "c.properties", "security.protocol=SASL_SSL", nil, []string{
			"FILE:1:1: security.protocol: SASL_SSL needs sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"}},
		{"Java: Kerberos", "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", nil, []string{
			"FILE:2:1: sasl.mechanism: is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"}},
		{"Java: the module of another mechanism", "c.properties", plain + scram + "username=a password=" + canary + ";", nil, []string{
			"FILE:3:1: sasl.jaas.config: PLAIN needs the login module org.apache.kafka.common.security.plain.PlainLoginModule"}},
		{"Java: a mistyped option", "c.properties", plain + jaasPlain + "user=a password=" + canary + ";", nil, []string{
			"FILE:3:1: sasl.jaas.config: the login module has no option user; did you mean username?"}},
		{"Java: a quote too few", "c.properties", plain + jaasPlain + `username="a password="` + canary + `";`, nil, []string{
			"FILE:3:1: sasl.jaas.config: a quote is not closed"}},
		{"Java: an option that may be a password", "c.properties", plain + jaasPlain + `username=a password="x" ` + canary + `="";`, nil, []string{
			"FILE:3:1: sasl.jaas.config: holds an option that the login module does not have; it has username, password"}},
		{"Java: no semicolon", "c.properties", plain + jaasPlain + "username=a password=" + canary, nil, []string{
			"FILE:3:1: sasl.jaas.config: a semicolon must end it"}},
		{"Java: no password", "c.properties", plain + jaasPlain + "username=a;", nil, []string{
			"FILE: sasl.jaas.config: PLAIN needs a password, here or as KBENCH_SASL_PASSWORD"}},
		{"Java: delegation tokens", "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=" + scram + "username=a password=b tokenauth=true;", nil, []string{
			"FILE:3:1: sasl.jaas.config: tokenauth (delegation tokens) is not supported"}},
		{"Java: a handler of the user's own", "c.properties", oauth + ";\nsasl.login.callback.handler.class=com.example.Handler", nil, []string{
			`FILE:3:1: sasl.jaas.config: has no user: unsecuredLoginStringClaim_sub="…" is needed, or sasl.oauthbearer.token.endpoint.url`,
			"FILE:4:1: sasl.login.callback.handler.class: names Java code, which cannot be run here; a token can come from a program: net.sasl.tokenCommand in a .yaml file"}},
		{"Java: a handler without its endpoint", "c.properties", oauth + ";\nsasl.login.callback.handler.class=" + handlerOIDC, nil, []string{
			"FILE:4:1: sasl.login.callback.handler.class: needs sasl.oauthbearer.token.endpoint.url"}},
		{"Java: a claim that is not the user's to set", "c.properties", oauth + "unsecuredLoginStringClaim_sub=a unsecuredLoginNumberClaim_exp=1;", nil, []string{
			"FILE:3:1: sasl.jaas.config: a claim without a name, iat and exp cannot be set"}},
		{"Java: a type of stores that is none", "c.properties", "security.protocol=SSL\nssl.truststore.type=BKS", nil, []string{
			"FILE:2:1: ssl.truststore.type: is none of PEM, PKCS12, JKS"}},
		{"Java: a name check that is none", "c.properties", "security.protocol=SSL\nssl.endpoint.identification.algorithm=ldaps", nil, []string{
			"FILE:2:1: ssl.endpoint.identification.algorithm: is neither https nor empty"}},
		{"Java: old versions of TLS alone", "c.properties", "security.protocol=SSL\nssl.enabled.protocols=TLSv1,TLSv1.1", nil, []string{
			"FILE:2:1: ssl.enabled.protocols: holds neither TLSv1.2 nor TLSv1.3; older versions are not spoken"}},
		{"Java: a trust store that is not there", "c.properties", "security.protocol=SSL\nssl.truststore.location=/no/such.jks", nil, []string{
			"FILE:2:1: ssl.truststore.location: /no/such.jks cannot be read: no such file or directory"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := row.file
			if file != "" && !strings.HasPrefix(file, "/") {
				file = written(t, row.file, row.text)
			}
			_, err := Load(file, row.environ)
			var problems settings.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, strings.ReplaceAll(strings.Join(row.want, "\n"), "FILE", file), err.Error())
			require.NotContains(t, err.Error(), "c4n4ry")
		})
	}
}

func TestWarnings(t *testing.T) {
	for _, row := range []struct{ name, file, text, want string }{
		{"what other clients use", "c.properties", "acks=all\nlinger.ms=5\nclient.id=x\nbootstrap.servers=a:1", "only what is about brokers, TLS and SASL is used, and not acks, linger.ms, client.id (lines 1, 2, 3); set what you need of it in the workload or by --set"},
		{"no protocol", "c.properties", "sasl.mechanism=PLAIN", "security.protocol is not given, so that TLS and SASL are not used, as in Kafka's own clients"},
		{"PLAIN without TLS", "a.yaml", "net: {sasl: {mechanism: PLAIN, user: u, password: " + canary + "}}", "SASL PLAIN without TLS: the password crosses the network as it is"},
		{"a token endpoint without TLS", "a.yaml", "net: {tls: {enabled: true}, sasl: {mechanism: OAUTHBEARER, oidc: {tokenEndpoint: 'http://h', clientID: a, clientSecret: " + canary + "}}}", "the token endpoint is not https: client secret and tokens cross the network as they are"},
		{"nothing to say", "a.yaml", "net: {tls: {enabled: true}, sasl: {mechanism: PLAIN, user: u, password: p}}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := loadText(t, row.file, row.text)
			require.NoError(t, err)
			if row.want == "" {
				require.Empty(t, s.Warnings)
				return
			}
			require.Len(t, s.Warnings, 1)
			require.Contains(t, s.Warnings[0], row.want)
			require.NotContains(t, s.Warnings[0], canary)
		})
	}
}

func TestJavaOptionsOfTLS(t *testing.T) {
	s, err := loadText(t, "c.properties", "security.protocol=SSL\nssl.endpoint.identification.algorithm=\nssl.enabled.protocols=TLSv1.3")
	require.NoError(t, err)
	require.True(t, s.tls.InsecureSkipVerify)
	require.NotNil(t, s.tls.VerifyConnection, "the rest is checked")
	require.EqualValues(t, 0x0304, s.tls.MinVersion)
	s, err = loadText(t, "c.properties", "security.protocol=SSL\nssl.endpoint.identification.algorithm=HTTPS\nssl.enabled.protocols=TLSv1.2,TLSv1.3")
	require.NoError(t, err)
	require.False(t, s.tls.InsecureSkipVerify)
	require.EqualValues(t, 0x0303, s.tls.MinVersion)
}

func TestEveryKeyHasAVariable(t *testing.T) {
	names := map[string]string{}
	for _, v := range Variables() {
		require.Empty(t, names[v.Name], "%s and %s share a variable", names[v.Name], v.Key)
		names[v.Name] = v.Key
		require.NotEmpty(t, v.Doc, v.Key)
	}
	require.Equal(t, "net.sasl.password", names["KBENCH_SASL_PASSWORD"])
	require.Equal(t, "net.tls.trustStore.location", names["KBENCH_TLS_TRUSTSTORE_LOCATION"])
	require.Equal(t, "net.sasl.oidc.clientSecret", names["KBENCH_SASL_OIDC_CLIENTSECRET"])
	for _, key := range []string{"net.sasl.password", "net.sasl.token", "net.sasl.oidc.clientSecret", "net.tls.keyStore.key", "net.tls.keyStore.password", "net.tls.keyStore.keyPassword", "net.tls.trustStore.password"} {
		require.True(t, isSecret(key), key)
	}
}

func TestASettingsIsNotChangedByItsUse(t *testing.T) {
	s, err := loadText(t, "a.yaml", "net: {tls: {enabled: true}}")
	require.NoError(t, err)
	cfg := client.NewConfig()
	s.Apply(cfg)
	cfg.Net.TLS.ServerName = "changed"
	require.Empty(t, s.tls.ServerName)
	plain, err := Load("", nil)
	require.NoError(t, err)
	plain.Apply(cfg)
	require.Nil(t, cfg.Net.TLS, "nothing is left of what was there before")
	require.False(t, plain.Given())
	secretOnly, err := Load("", []string{"KBENCH_SASL_PASSWORD=x", "KBENCH_TLS_KEYSTORE_PASSWORD=x"})
	require.NoError(t, err)
	require.False(t, secretOnly.Given())
	asked, err := Load("", []string{"KBENCH_TLS_ENABLED=true"})
	require.NoError(t, err)
	require.True(t, asked.Given())
	require.True(t, s.Given())
}

// A file is damaged at every place in turn: a letter is missing, or a quote, a line break, a space, an
// equals sign or a colon too many. Whatever is said of it, the secrets are not. By default each place
// has three of the ten damages.
func TestDamagedFilesShowNoSecret(t *testing.T) {
	const secret = "w0rtl1ch"
	texts := map[string]string{
		"a.yaml": "net:\n  sasl:\n    mechanism: PLAIN\n    user: alice\n    password: \"" + secret + "\"\n  tls:\n    keyStore:\n      keyPassword: " + secret + "\n      key: |\n        " + secret + "\n        " + secret + "\n",
		"a.properties": "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.key.password = " + secret + "\nsasl.jaas.config=" + jaasPlain + "\\\n  username=\"alice\" \\\n  password=\"" + secret + "\";\n" +
			"ssl.keystore.key=-----BEGIN PRIVATE KEY-----\\n\\\n" + secret + "\\n\\\n" + secret + "==\\n\\\n-----END PRIVATE KEY-----\n",
	}
	for name, text := range texts {
		for at := range len(text) + 1 {
			for i, more := range []string{"", "\"", "'", "\n", " ", "=", ":", "\\", ";", "\t"} {
				if os.Getenv("KBENCH_SOAK") != "1" && (at+i)%10 > 2 {
					continue
				}
				damaged := text[:at] + more + text[min(at+1, len(text)):]
				r := newReader("f")
				if name == "a.yaml" {
					r.readYAML("f", []byte(damaged))
				} else {
					r.readJava("f", []byte(damaged))
				}
				if len(r.problems) == 0 {
					r.build()
				}
				said := r.problems.Error() + strings.Join(r.warnings, "\n")
				for _, piece := range []string{"w0rt", "tl1c", "1ch"} {
					if strings.Contains(said, piece) {
						t.Fatalf("%s at %d with %q:\n%s\nsays %s", name, at, more, damaged, said)
					}
				}
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("a.yaml", "net: {sasl: {mechanism: PLAIN, user: u, password: "+canary+"}}")
	f.Add("a.properties", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config="+jaasPlain+"username=a password="+canary+";")
	f.Add("a.properties", "sasl.oauthbearer.token.endpoint.url=http://x\nsecurity.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=a clientSecret=b;")
	f.Fuzz(func(t *testing.T, name, text string) {
		r := newReader("f")
		if strings.HasSuffix(name, ".yaml") {
			r.readYAML("f", []byte(text))
		} else {
			r.readJava("f", []byte(text))
		}
		if len(r.problems) > 0 {
			return
		}
		if r.keys.Net.TLS.TrustStore.Location != "" || r.keys.Net.TLS.KeyStore.Location != "" || len(r.keys.Net.SASL.TokenCommand) > 0 {
			return // reads files and looks for programs
		}
		if out := r.build(); len(r.problems) == 0 && out.sasl.Mechanism == "OAUTHBEARER" && out.sasl.Token == nil {
			t.Fatal("no source of tokens, and no problem")
		}
	})
}
