package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// canary is every secret of these tests: nothing that kbench writes may hold it.
const canary = "c4n4ry-S3cret-9f2e"

// requireNoSecret looks for the canary in what was said and in every file of the folders.
func requireNoSecret(t *testing.T, e ending, dirs ...string) {
	t.Helper()
	forms := []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), "c4n4ry"}
	look := func(where string, data []byte) {
		for _, form := range forms {
			require.False(t, bytes.Contains(data, []byte(form)), "%s holds a secret:\n%s", where, data)
		}
	}
	look("standard output", []byte(e.out))
	look("standard error", []byte(e.err))
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			look(path, data)
			return err
		})
		require.NoError(t, err)
	}
}

// selfSigned is a certificate for 127.0.0.1, valid until then, and itself as PEM.
func selfSigned(t *testing.T, until time.Time, name string) (tls.Certificate, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// secureBroker is a broker in this process; with SASL its user is alice, whose password is the canary.
func secureBroker(t *testing.T, withSASL bool, c *tls.Config) string {
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	if withSASL {
		opts = append(opts, kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", canary), kfake.Superuser("SCRAM-SHA-256", "alice", canary))
	}
	if c != nil {
		opts = append(opts, kfake.TLS(c))
	}
	cluster, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

const jaasPlain = "org.apache.kafka.common.security.plain.PlainLoginModule required "

// Secrets from files, from the environment, from both kinds of files: a run goes well, its report
// is drawn, and the secret is nowhere.
func TestSecretsAreInNoResult(t *testing.T) {
	t.Parallel()
	cert, ca := selfSigned(t, time.Now().Add(time.Hour), "127.0.0.1")
	both := secureBroker(t, true, &tls.Config{Certificates: []tls.Certificate{cert}})
	plain := secureBroker(t, true, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(ca), 0o600))
	for _, row := range []struct {
		name, broker, file, text, protocol, mechanism string
		env                                           []string
	}{
		{"properties", both, "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.location=ca.pem\nacks=all\nsasl.jaas.config=" + jaasPlain + "username=alice password=\"" + canary + "\";\n", "SASL_SSL", "PLAIN", nil},
		{"YAML", both, "c.yaml", "net: {tls: {trustStore: {location: ca.pem}}, sasl: {mechanism: SCRAM-SHA-256, user: alice, password: " + canary + "}}", "SASL_SSL", "SCRAM-SHA-256", nil},
		{"environment", plain, "", "", "SASL_PLAINTEXT", "SCRAM-SHA-256", []string{"KBENCH_SASL_MECHANISM=SCRAM-SHA-256", "KBENCH_SASL_USER=alice", "KBENCH_SASL_PASSWORD=" + canary}},
		{"both", plain, "c.yaml", "net: {sasl: {mechanism: PLAIN, user: alice}}", "SASL_PLAINTEXT", "PLAIN", []string{"KBENCH_SASL_PASSWORD=" + canary, "KBENCH_COMMAND_CONFIG=c.yaml"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "result")
			flags := args("run", "quick", light, "-b", row.broker, "--out", out)
			if row.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, row.file), []byte(row.text), 0o600))
				if row.env == nil {
					flags = append(flags, "--command-config", row.file)
				}
			}
			e := start(t, dir, row.env, flags...).wait()
			e.requireCode(t, codeDone)
			c := loadResult(t, out).Provenance.Cluster
			require.Equal(t, row.protocol, c.SecurityProtocol)
			require.Equal(t, row.mechanism, c.SASLMechanism)
			requireNoSecret(t, e, out)
			report, err := os.ReadFile(filepath.Join(out, "report.html"))
			require.NoError(t, err)
			require.Contains(t, string(report), row.protocol)
			require.NotContains(t, string(report), "alice")
			again := start(t, dir, nil, "report", out).wait()
			again.requireCode(t, codeDone)
			requireNoSecret(t, again, out)
		})
	}
}

// Every way to be refused: a line that says what, which broker and what to do, soon, exit code 1, no
// secret, and nothing left behind.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour)
	good, ca := selfSigned(t, soon, "127.0.0.1")
	named, namedCA := selfSigned(t, soon, "other.test")
	old, oldCA := selfSigned(t, time.Now().Add(-time.Hour), "127.0.0.1")
	server := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	mutual := server(good)
	mutual.ClientAuth = tls.RequireAnyClientCert
	plaintext, sasl, tlsOnly := secureBroker(t, false, nil), secureBroker(t, true, nil), secureBroker(t, false, server(good))
	yaml := func(mechanism, password string) string {
		return "net: {sasl: {mechanism: " + mechanism + ", user: alice, password: " + password + "}}"
	}
	trusting := func(ca string) string {
		return "net:\n  tls:\n    trustStore:\n      certificates: |\n        " + strings.ReplaceAll(ca, "\n", "\n        ") + "\n"
	}
	for _, row := range []struct {
		name, broker, text string
		says               []string
	}{
		{"wrong password", sasl, yaml("PLAIN", canary+"-wrong"), []string{"during authentication", "user, password or token may be wrong"}},
		{"wrong password, SCRAM", sasl, yaml("SCRAM-SHA-256", canary+"-wrong"), []string{"during authentication", "user, password or token may be wrong"}},
		{"wrong mechanism", sasl, "net: {sasl: {mechanism: OAUTHBEARER, token: " + canary + "}}", []string{"does not offer the SASL mechanism OAUTHBEARER on this listener; use one of: PLAIN, SCRAM-SHA-256"}},
		{"a file without a token", sasl, "net: {sasl: {mechanism: OAUTHBEARER, tokenFile: none}}", []string{"no token for OAUTHBEARER could be had", "the file none cannot be read"}},
		{"a program that fails, and tells the secret", sasl, "net: {sasl: {mechanism: OAUTHBEARER, tokenCommand: [sh, -c, 'echo " + canary + " >&2; echo " + canary + "; exit 3']}}", []string{"no token for OAUTHBEARER could be had", "the program sh failed (exit status 3); run it by hand to see why"}},
		{"no authentication where there must be", sasl, "net: {tls: {enabled: false}}", []string{"this listener may ask for SASL authentication, and none is configured"}},
		{"wrong authority", tlsOnly, trusting(namedCA), []string{"certificate is not trusted: add the CA that signed it to the trust store"}},
		{"the system's authorities", tlsOnly, "net.tls.enabled: true", []string{"certificate is not trusted"}},
		{"wrong host name", secureBroker(t, false, server(named)), trusting(namedCA), []string{"certificate is for other names: connect by a name that it holds"}},
		{"an expired certificate", secureBroker(t, false, server(old)), trusting(oldCA), []string{"certificate is not valid at this time: renew it", "expired"}},
		{"a client certificate is missing", secureBroker(t, false, mutual), trusting(ca), []string{"client certificate"}},
		{"TLS to a plaintext port", plaintext, trusting(ca), []string{"TLS handshake in time: perhaps not a TLS port", "after 3s"}},
		{"plaintext to a TLS port", tlsOnly, "net: {tls: {enabled: false}}", []string{"expects TLS"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(row.text), 0o600))
			e := kbenchIn(t, dir, "run", "quick", "-b", row.broker, "--command-config", "c.yaml", "--out", "result", "-q", "--set", "net.dialTimeout=3s")
			e.requireCode(t, codeError)
			e.requireOneLine(t, append(row.says, "broker "+row.broker)...)
			require.Less(t, e.took, 9*time.Second, "within the dial timeout, and time for a busy machine")
			requireNoSecret(t, e)
			require.NoDirExists(t, filepath.Join(dir, "result"))
		})
	}
}

// What is wrong with the file, the variables or the flags is wrong usage: the line, and no secret.
func TestWrongSecuritySettings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, file, text string
		env, flags       []string
		says             []string
	}{
		{"a file that is not there", "", "", nil, []string{"--command-config", "none.yaml"}, []string{"none.yaml: cannot be read: no such file"}},
		{"no file", "", "", nil, []string{"--command-config", ""}, []string{"--command-config names no file"}},
		{"a mistyped key", "c.yaml", "net: {sasl: {pasword: " + canary + "}}", nil, nil, []string{"c.yaml:1:14: net.sasl.pasword: unknown key; did you mean net.sasl.password?"}},
		{"a mistyped setting of Java", "c.properties", "sasl.jaas.confg=" + canary, nil, nil, []string{"c.properties:1:1: sasl.jaas.confg: unknown setting; did you mean sasl.jaas.config?"}},
		{"a quote too few", "c.properties", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=" + jaasPlain + "username=\"a password=\"" + canary + "\";", nil, nil, []string{"c.properties:3:1: sasl.jaas.config: "}},
		{"a key store that does not open", "c.yaml", "net.tls.trustStore: {location: c.yaml, password: " + canary + "}", nil, nil, []string{"c.yaml:1:", "is neither PEM, PKCS12 nor JKS"}},
		{"a mistyped variable", "", "", []string{"KBENCH_SASL_PASWORD=" + canary}, nil, []string{"$KBENCH_SASL_PASWORD: unknown variable; did you mean KBENCH_SASL_PASSWORD?"}},
		{"no cluster", "c.yaml", "net: {tls: {enabled: true}}", nil, nil, []string{"but not to which cluster: name it by --brokers"}},
		{"a secret in --set", "", "", nil, []string{"--set", "net.sasl.password=" + canary}, []string{"net.sasl.password: is no key of a workload: how to connect stands in the file of --command-config"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			flags := append([]string{"run", "quick"}, row.flags...)
			if row.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, row.file), []byte(row.text), 0o600))
				flags = append(flags, "--command-config", row.file)
			}
			e := start(t, dir, row.env, flags...).wait()
			e.requireCode(t, codeUsage)
			e.requireOneLine(t, row.says...)
			requireNoSecret(t, e)
		})
	}
}

func TestSecretsOfAWorkloadAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "name: w\nnet:\n  sasl:\n    mechanism: PLAIN\n    password: " + canary + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.yaml"), []byte(text), 0o600))
	for _, command := range []string{"run", "plan"} {
		e := kbenchIn(t, dir, command, "w.yaml")
		e.requireCode(t, codeUsage)
		e.requireWords(t, "w.yaml:3:", "net.sasl: is no key of a workload: how to connect stands in the file of --command-config")
		requireNoSecret(t, e)
	}
}

func TestHelpOnCommandConfig(t *testing.T) {
	t.Parallel()
	e := kbench(t, "help", "command-config")
	e.requireCode(t, codeDone)
	for _, word := range []string{"net.sasl.password  $KBENCH_SASL_PASSWORD", "net.tls.trustStore.location", "sasl.jaas.config"} {
		require.Contains(t, e.out, word)
	}
	require.Contains(t, kbench(t, "--help").out, "command-config")
}

// The brokers may stand in the file; --brokers goes before them.
func TestBrokersOfTheFile(t *testing.T) {
	t.Parallel()
	broker := secureBroker(t, false, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.properties"), []byte("bootstrap.servers="+broker+"\nclient.id=x\n"), 0o600))
	e := kbenchIn(t, dir, args("run", "quick", light, "--command-config", "c.properties", "--out", "r")...)
	e.requireCode(t, codeDone)
	require.Contains(t, e.err, "kbench: warning: c.properties: only what is about brokers, TLS and SASL is used, and not client.id (line 2)")
	require.Equal(t, []string{broker}, loadResult(t, filepath.Join(dir, "r")).Provenance.Cluster.Bootstrap)
	e = kbenchIn(t, dir, "run", "quick", "--command-config", "c.properties", "-b", "127.0.0.1:1", "-q")
	e.requireCode(t, codeError)
	e.requireOneLine(t, "127.0.0.1:1")
}
