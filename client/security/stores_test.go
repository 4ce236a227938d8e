package security

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
)

// The stores were written by testdata/stores/make.sh, with keytool and openssl.

func store(name string) string { return filepath.Join("testdata", "stores", name) }

func storeText(t testing.TB, name string) string {
	data, err := os.ReadFile(store(name))
	require.NoError(t, err)
	return string(data)
}

// quoted is a PEM text in YAML's double quotes; keytool ends lines with CR and LF.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", `\n`) + `"`
}

// inline is a PEM text as a value of a properties file.
func inline(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\\n\\\n")
}

// mutual is a TLS server with the certificate of server.p12 that asks for one of the authority's
// clients, and says whose it got.
func mutual(t *testing.T) (addr string, clients chan string) {
	identity, err := pkcs12Identity([]byte(storeText(t, "server.p12")), "changeit")
	require.NoError(t, err)
	ca, err := pemCertificates([]byte(storeText(t, "ca.pem")))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(ca[0])
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{*identity}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	require.NoError(t, err)
	clients = make(chan string, 1) // written per connection, read by the test, closed by nobody
	done := make(chan struct{})
	t.Cleanup(func() { _ = ln.Close(); <-done })
	// Owned by the test; ends with the listener; Cleanup waits.
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			greet(c.(*tls.Conn), clients)
		}
	}()
	return ln.Addr().String(), clients
}

func greet(c *tls.Conn, clients chan<- string) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if c.Handshake() == nil {
		clients <- c.ConnectionState().PeerCertificates[0].Subject.CommonName
		_, _ = io.WriteString(c, "hello")
	}
}

// hello connects as the settings say, to localhost by default.
func hello(t *testing.T, s *Settings, addr string) error {
	cfg := client.NewConfig()
	s.Apply(cfg)
	require.NotNil(t, cfg.Net.TLS)
	if cfg.Net.TLS.ServerName == "" {
		cfg.Net.TLS.ServerName = "localhost"
	}
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", addr, cfg.Net.TLS)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 5))
	return err
}

func TestEveryStoreOpens(t *testing.T) {
	trust := "net.tls.trustStore.location: " + store("ca.pem") + "\n"
	identity := "net.tls.keyStore: {location: " + store("client.p12") + ", password: changeit}\n"
	in := func(name, more string) string { return "{location: " + store(name) + more + "}" }
	yaml := map[string]string{}
	for _, name := range []string{"trust.p12", "trust.jks", "trust-is-p12.jks", "trust-two.jks", "client.p12", "client.jks"} {
		yaml["trust in "+name] = identity + "net.tls.trustStore: " + in(name, ", password: changeit")
	}
	for _, name := range []string{"client.p12", "client.jks", "client-openssl.p12", "client-legacy.p12"} {
		yaml["identity in "+name] = trust + "net.tls.keyStore: " + in(name, ", password: changeit")
	}
	for name, more := range map[string]string{
		"a type that is given": ", password: changeit, type: JKS", "PKCS12 for JKS, as Java takes it": ", password: changeit, type: PKCS12",
		"JKS without a password, as Java takes it": "",
	} {
		yaml["trust: "+name] = identity + "net.tls.trustStore: " + in("trust.jks", more)
	}
	yaml["trust: a password beyond ASCII"] = identity + "net.tls.trustStore: " + in("trust-umlaut.jks", ", password: pässword")
	yaml["trust: PEM"] = identity + trust
	yaml["identity: PEM, key and certificates in one file"] = trust + "net.tls.keyStore: " + in("client.pem", "")
	yaml["identity: PEM, encrypted key"] = trust + "net.tls.keyStore: " + in("client-encrypted.pem", ", keyPassword: changeit, type: PEM")
	yaml["identity: JKS, a key with a password of its own"] = trust + "net.tls.keyStore: " + in("client-keypassword.jks", ", password: changeit, keyPassword: another")
	for name, password := range map[string]string{"client-key.pem": "", "pkcs1-key.pem": "", "encrypted-key.pem": ", keyPassword: changeit", "encrypted-des3-key.pem": ", keyPassword: changeit"} {
		yaml["identity: inline, "+name] = trust + "net.tls.keyStore: {certificateChain: " + quoted(storeText(t, "client-cert.pem")) + ", key: " + quoted(storeText(t, name)) + password + "}"
	}
	yaml["trust: inline"] = identity + "net.tls.trustStore.certificates: " + quoted(storeText(t, "ca.pem"))
	files := map[string]string{}
	for name, text := range yaml {
		files["YAML "+name+"\x00a.yaml"] = text
	}
	files["YAML no name check\x00a.yaml"] = "net.tls: {serverName: other.test, verifyHostname: false, trustStore: " + in("ca.pem", "") + ", keyStore: " + in("client.pem", "") + "}"
	files["Java PKCS12\x00c.properties"] = "security.protocol=SSL\nssl.truststore.location=" + store("trust.p12") + "\nssl.truststore.password=changeit\nssl.truststore.type=pkcs12\n" +
		"ssl.keystore.location=" + store("client.p12") + "\nssl.keystore.password=changeit\nssl.key.password=changeit\n"
	files["Java JKS\x00c.properties"] = "security.protocol=SSL\nssl.truststore.location=" + store("trust.jks") + "\nssl.truststore.password=changeit\nssl.truststore.type=JKS\n" +
		"ssl.keystore.location=" + store("client-keypassword.jks") + "\nssl.keystore.password=changeit\nssl.key.password=another\nssl.keystore.type=JKS\n"
	files["Java PEM files\x00c.properties"] = "security.protocol=SSL\nssl.truststore.location=" + store("ca.pem") + "\nssl.truststore.type=PEM\n" +
		"ssl.keystore.location=" + store("client-encrypted.pem") + "\nssl.key.password=changeit\nssl.keystore.type=PEM\n"
	files["Java PEM inline\x00c.properties"] = "security.protocol=SSL\nssl.truststore.certificates=" + inline(storeText(t, "ca.pem")) + "\nssl.truststore.type=PEM\n" +
		"ssl.keystore.certificate.chain=" + inline(storeText(t, "client-cert.pem")) + "\nssl.keystore.key=" + inline(storeText(t, "encrypted-key.pem")) + "\nssl.key.password=changeit\nssl.keystore.type=PEM\n"
	addr, clients := mutual(t)
	for key, text := range files {
		name, file, _ := strings.Cut(key, "\x00")
		t.Run(name, func(t *testing.T) {
			s, err := loadText(t, file, text)
			require.NoError(t, err)
			require.NoError(t, hello(t, s, addr))
			require.Equal(t, "client", <-clients)
		})
	}
}

func TestStoresThatDoNotOpen(t *testing.T) {
	dir := t.TempDir()
	damaged := func(name string, change func([]byte) []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, change([]byte(storeText(t, name))), 0o600))
		return path
	}
	short := func(b []byte) []byte { return b[:len(b)-30] }
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("hello"), 0o600))
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, maxFile+1), 0o600))
	badCert := filepath.Join(dir, "bad.pem")
	require.NoError(t, os.WriteFile(badCert, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600))
	const wrongStore = "the password is wrong or missing, or the file is damaged"
	const wrongKey = "the password of the key is wrong or missing, or the key is damaged"
	trust := func(file, more string) string { return "net.tls.trustStore: {location: " + file + more + "}" }
	own := func(file, more string) string { return "net.tls.keyStore: {location: " + file + more + "}" }
	for _, row := range []struct{ name, text, key, want string }{
		{"PKCS12, wrong password", trust(store("trust.p12"), ", password: "+canary), "trustStore.password", wrongStore},
		{"PKCS12, no password", trust(store("trust.p12"), ""), "trustStore.location", wrongStore},
		{"JKS, wrong password", trust(store("trust.jks"), ", password: "+canary), "trustStore.password", wrongStore},
		{"PKCS12, damaged", trust(damaged("trust.p12", short), ", password: changeit"), "trustStore.location", "cannot be read"},
		{"JKS, damaged", trust(damaged("trust.jks", short), ", password: changeit"), "trustStore.location", "cannot be read: it is a damaged JKS store"},
		{"JKS, damaged, no password", trust(damaged("trust.jks", short), ""), "trustStore.location", "cannot be read: it is a damaged JKS store"},
		{"JKS of another version", trust(damaged("trust.jks", func(b []byte) []byte { b[7] = 9; return b }), ""), "trustStore.location", "is a JKS store of version 9, which is not known"},
		{"JKS that says it is endless", trust(damaged("trust.jks", func(b []byte) []byte { b[8] = 0xff; return b }), ""), "trustStore.location", "damaged JKS store"},
		{"JCEKS", trust(store("trust.jceks"), ", password: changeit"), "trustStore.location", "is a JCEKS store, which cannot be read; make it a PKCS12 one"},
		{"openssl's PKCS12 without Java's mark", trust(store("trust-openssl.p12"), ", password: changeit"), "trustStore.location", "not marked as trusted"},
		{"no store at all", trust(garbage, ""), "trustStore.location", "is neither PEM, PKCS12 nor JKS"},
		{"PEM that should be JKS", trust(store("ca.pem"), ", type: JKS"), "trustStore.location", "is PEM, not JKS"},
		{"JKS that should be PEM", trust(store("trust.jks"), ", type: PEM"), "trustStore.location", "is JKS, not PEM"},
		{"PEM without a certificate", trust(store("client-key.pem"), ""), "trustStore.location", "holds no certificate in PEM"},
		{"PEM with a certificate that is none", trust(badCert, ""), "trustStore.location", "certificate 1 cannot be read"},
		{"a file that is too large", trust(large, ""), "trustStore.location", "is larger than 4 MiB"},
		{"a file that is not there", own("/no/such", ""), "keyStore.location", "/no/such cannot be read: no such file or directory"},
		{"PKCS12 without a key", own(store("trust.p12"), ", password: changeit"), "keyStore.location", "private key missing"},
		{"JKS without a key", own(store("trust.jks"), ", password: changeit"), "keyStore.location", "holds 0 private keys; one is needed"},
		{"JKS with two keys", own(store("client-two.jks"), ", password: changeit"), "keyStore.location", "holds 2 private keys; one is needed"},
		{"JKS, the key's own password is missing", own(store("client-keypassword.jks"), ", password: changeit"), "keyStore.location", wrongKey},
		{"JKS, the key's own password is wrong", own(store("client-keypassword.jks"), ", password: changeit, keyPassword: "+canary), "keyStore.keyPassword", wrongKey},
		{"PEM without a key", own(store("client-cert.pem"), ""), "keyStore.location", "holds no private key in PEM"},
		{"PEM, encrypted key, no password", own(store("client-encrypted.pem"), ""), "keyStore.location", wrongKey},
		{"PEM, encrypted key, wrong password", own(store("client-encrypted.pem"), ", keyPassword: "+canary), "keyStore.keyPassword", wrongKey},
		{"an old kind of encryption", "net.tls.keyStore: {certificateChain: " + quoted(storeText(t, "client-cert.pem")) + ", key: " + quoted(storeText(t, "old-encrypted-key.pem")) + "}", "keyStore.key", "openssl pkcs8 -topk8"},
		{"a key of another certificate", "net.tls.keyStore: {certificateChain: " + quoted(storeText(t, "client-cert.pem")) + ", key: " + quoted(storeText(t, "other-ec-key.pem")) + "}", "keyStore.key", "belongs to none of the certificates"},
		{"a certificate without a key", "net.tls.keyStore: {certificateChain: x}", "keyStore.certificateChain", "has no key: net.tls.keyStore.key is missing"},
		{"a key without a certificate", "net.tls.keyStore: {key: " + canary + "}", "keyStore.key", "has no certificate: net.tls.keyStore.certificateChain is missing"},
		{"a file and an inline key", own("x", ", key: "+canary), "keyStore.location", "both a file and a certificate with its key are given"},
		{"a file and inline certificates", trust("x", ", certificates: y"), "trustStore.certificates", "both a file and certificates are given"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := loadText(t, "a.yaml", row.text)
			var problems settings.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, 1)
			require.Equal(t, "net.tls."+row.key, problems[0].Key)
			require.Contains(t, problems[0].Text, row.want)
			require.Positive(t, problems[0].Line)
			require.NotContains(t, err.Error(), "c4n4ry")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestTheBrokersCertificateIsChecked(t *testing.T) {
	addr, _ := mutual(t)
	own := ", keyStore: {location: " + store("client.pem") + "}"
	for _, row := range []struct{ name, tls, want string }{
		{"another name", "{serverName: other.test, trustStore: {location: " + store("ca.pem") + "}" + own + "}", "certificate is valid for localhost, not other.test"},
		{"the system's authorities", "{enabled: true" + own + "}", "unknown authority"},
		{"no name check, and no authority", "{verifyHostname: false, trustStore: {location: " + store("client-cert.pem") + "}" + own + "}", "unknown authority"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := loadText(t, "a.yaml", "net.tls: "+row.tls)
			require.NoError(t, err)
			require.ErrorContains(t, hello(t, s, addr), row.want)
		})
	}
}

func FuzzStores(f *testing.F) {
	for _, name := range []string{"trust.jks", "client.jks", "client-keypassword.jks", "trust.p12", "client.p12", "client-encrypted.pem", "pkcs1-key.pem"} {
		f.Add([]byte(storeText(f, name)))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = storeKind(data, "")
		_, _ = pemIdentity(data, data, "changeit")
		_, _ = jksCertificates(data, "")
		if s, err := jksRead(data, ""); err == nil {
			for _, k := range s.keys {
				_, _ = jksDecrypt(k.encrypted, "changeit")
			}
		}
	})
}
