//go:build kafka

package security_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/security"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// Distances of the listeners of docker/kafka with KAFKA_SASL from the port of the node.
const (
	saslPlaintext = 2
	ssl           = 3
	saslSSL       = 4
	mutualTLS     = 5
	shortSessions = 6
)

var mechanisms = []string{"plain", "scram-sha-256", "scram-sha-512", "oauthbearer"}

// patience bounds what must happen on a real cluster, on a busy machine.
const patience = 3 * time.Minute

func listener(t *testing.T, c *kafkatest.Cluster, distance int) string {
	_, port, err := net.SplitHostPort(c.Bootstrap[0])
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return net.JoinHostPort("localhost", strconv.Itoa(n+distance))
}

// bed is a client that connects as a file says.
type bed struct {
	c    *client.Client
	cfg  *client.Config
	ctx  context.Context
	said *levels
	// dials counts the connections opened.
	dials atomic.Int64
}

func config(t *testing.T, file string) *client.Config {
	s, err := security.Load(file, nil)
	require.NoError(t, err)
	cfg := client.NewConfig()
	s.Apply(cfg)
	return cfg
}

func open(t *testing.T, addr, file string) *bed {
	b := &bed{cfg: config(t, file), said: &levels{count: map[string]int{}}}
	b.cfg.Logger = slog.New(b.said)
	b.cfg.Net.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		b.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	var err error
	b.c, err = client.NewClientContext(b.ctx, []string{addr}, b.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.c.Close() })
	return b
}

// levels counts what a client says, by its words.
type levels struct {
	mu    sync.Mutex
	count map[string]int
}

func (*levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *levels) WithGroup(string) slog.Handler          { return l }
func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[r.Message]++
	return nil
}

func (l *levels) times(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[message]
}

func (b *bed) topic(t *testing.T) string {
	name := fmt.Sprintf("kbench-test-security-%d", time.Now().UnixNano())
	require.NoError(t, b.c.CreateTopics(b.ctx, client.TopicSpec{Name: name, Partitions: 2, ReplicationFactor: 1}))
	t.Cleanup(func() { require.NoError(t, b.c.DeleteTopics(b.ctx, name)) })
	return name
}

// readBack reads n messages from the beginning and returns how often each value came.
func (b *bed) readBack(t *testing.T, topic string, n int) map[string]int {
	r, err := b.c.NewReader(client.ReaderConfig{Topic: topic, Partitions: []int32{0, 1}})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	got := map[string]int{}
	for range n {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(t, err)
		got[string(m.Value)]++
	}
	return got
}

// Every mechanism with and without TLS, TLS with every kind of store, and client certificates:
// messages go there and come back.
func TestKafkaEveryWayIn(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	in := func(name string) string { return filepath.Join(cluster.Dir, name) }
	type row struct {
		name     string
		distance int
		file     string
	}
	var rows []row
	for _, m := range mechanisms {
		rows = append(rows,
			row{m, saslPlaintext, in("client-" + m + ".properties")},
			row{m + " and TLS", saslSSL, in("client-" + m + "-ssl.properties")})
	}
	own := "ssl.keystore.location=" + in("client.p12") + "\nssl.keystore.password=changeit\n"
	for name, trust := range map[string]string{
		"PEM":              "ssl.truststore.location=" + in("ca.pem") + "\n",
		"PKCS12":           "ssl.truststore.location=" + in("trust.p12") + "\nssl.truststore.password=changeit\nssl.truststore.type=PKCS12\n",
		"JKS":              "ssl.truststore.location=" + in("trust.jks") + "\nssl.truststore.password=changeit\nssl.truststore.type=JKS\n",
		"no name check":    "ssl.truststore.location=" + in("ca.pem") + "\nssl.endpoint.identification.algorithm=\n",
		"TLS 1.3 at least": "ssl.truststore.location=" + in("ca.pem") + "\nssl.enabled.protocols=TLSv1.3\n",
	} {
		rows = append(rows, row{"TLS, " + name, ssl, written(t, "c.properties", "security.protocol=SSL\n"+trust)})
		rows = append(rows, row{"client certificate, " + name, mutualTLS, written(t, "c.properties", "security.protocol=SSL\n"+trust+own)})
	}
	rows = append(rows,
		row{"client certificate of docker/kafka", mutualTLS, in("client-mtls.properties")},
		row{"client certificate, JKS", mutualTLS, written(t, "c.yaml", "net.tls: {trustStore: {location: "+in("ca.pem")+"}, keyStore: {location: "+in("client.jks")+", password: changeit}}")},
		row{"client certificate, PEM", mutualTLS, written(t, "c.yaml", "net.tls: {trustStore: {location: "+in("ca.pem")+"}, keyStore: {location: "+clientPEM(t, in("client.p12"))+"}}")},
		row{"a token from a file", saslSSL, written(t, "c.yaml", "net: {tls: {trustStore: {location: "+in("ca.pem")+"}}, sasl: {mechanism: OAUTHBEARER, tokenFile: "+written(t, "token", unsecured("alice", time.Hour)+"\n")+"}}")},
		row{"a token from a program", saslSSL, written(t, "c.yaml", "net: {tls: {trustStore: {location: "+in("ca.pem")+"}}, sasl: {mechanism: OAUTHBEARER, tokenCommand: [cat, "+written(t, "token", unsecured("alice", time.Hour)+"\n")+"]}}")},
		row{"an unsecured token of YAML", saslPlaintext, written(t, "c.yaml", "net: {sasl: {mechanism: OAUTHBEARER, unsecured: {subject: alice, lifetime: 10m}}}")},
	)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b := open(t, listener(t, cluster, row.distance), row.file)
			topic := b.topic(t)
			p, err := client.NewSyncProducerFromClient(b.c)
			require.NoError(t, err)
			for i := range 10 {
				_, _, err := p.SendMessageContext(b.ctx, &client.ProducerMessage{Topic: topic, Value: strconv.AppendInt(nil, int64(i), 10)})
				require.NoError(t, err)
			}
			require.NoError(t, p.Close(b.ctx))
			require.Len(t, b.readBack(t, topic, 10), 10)
		})
	}
}

func written(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// clientPEM writes what a PKCS12 store holds as PEM.
func clientPEM(t *testing.T, store string) string {
	data, err := os.ReadFile(store)
	require.NoError(t, err)
	key, leaf, chain, err := pkcs12.DecodeChain(data, "changeit")
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, c := range append([]*x509.Certificate{leaf}, chain...) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return written(t, "client.pem", string(text))
}

// Every way to be refused by a real broker: what the error says, once, within the dial timeout.
func TestKafkaRefusals(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	trust := "tls: {trustStore: {location: " + filepath.Join(cluster.Dir, "ca.pem") + "}}"
	sasl := func(mechanism, password string) string {
		return "sasl: {mechanism: " + mechanism + ", user: alice, password: " + password + "}"
	}
	const wrong = "c4n4ry-wrong"
	for _, row := range []struct {
		name     string
		distance int
		net      string
		says     string
	}{
		{"PLAIN, wrong password", saslPlaintext, sasl("PLAIN", wrong), "PLAIN authentication failed: SASL_AUTHENTICATION_FAILED (error code 58): wrong user, password or token for this mechanism (broker: Authentication failed: Invalid username or password)"},
		{"PLAIN and TLS, wrong password", saslSSL, trust + ", " + sasl("PLAIN", wrong), "PLAIN authentication failed"},
		{"SCRAM-SHA-256, wrong password", saslPlaintext, sasl("SCRAM-SHA-256", wrong), "SCRAM-SHA-256 authentication failed: SASL_AUTHENTICATION_FAILED"},
		{"SCRAM-SHA-512 and TLS, wrong password", saslSSL, trust + ", " + sasl("SCRAM-SHA-512", wrong), "SCRAM-SHA-512 authentication failed: SASL_AUTHENTICATION_FAILED"},
		{"OAUTHBEARER, a token that is none", saslPlaintext, "sasl: {mechanism: OAUTHBEARER, token: " + wrong + "}", "OAUTHBEARER authentication failed"},
		{"OAUTHBEARER, a token that is over", saslPlaintext, "sasl: {mechanism: OAUTHBEARER, token: " + unsecured("alice", -time.Hour) + "}", "OAUTHBEARER authentication failed"},
		{"no SASL", saslPlaintext, "tls: {enabled: false}", "this listener may ask for SASL authentication, and none is configured"},
		{"TLS and no SASL", saslSSL, trust, "this listener may ask for SASL authentication, and none is configured"},
		{"SASL where there is none", 0, sasl("PLAIN", wrong), "this listener does not ask for SASL"},
		{"SASL and TLS where TLS is alone", ssl, trust + ", " + sasl("PLAIN", wrong), "this listener does not ask for SASL"},
		{"wrong authority", ssl, "tls: {enabled: true}", "certificate is not trusted: add the CA"},
		{"wrong host name", ssl, "tls: {serverName: other.test, trustStore: {location: " + filepath.Join(cluster.Dir, "ca.pem") + "}}", "certificate is for other names"},
		{"no client certificate", mutualTLS, trust, "client certificate"},
		{"plaintext to a TLS port", ssl, "tls: {enabled: false}", "this looks like a TLS port"},
		{"TLS to a plaintext port", 0, trust, "most likely this is not a TLS port"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := config(t, written(t, "c.yaml", "net: {"+row.net+"}"))
			cfg.Metadata.Retry.Max = 0
			var dials atomic.Int64
			cfg.Net.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			addr, began := listener(t, cluster, row.distance), time.Now()
			_, err := client.NewClient([]string{addr}, cfg)
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, addr)
			require.ErrorIs(t, err, client.ErrNoBrokers)
			require.True(t, client.IsRefusal(err))
			require.NotContains(t, err.Error(), "c4n4ry")
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, time.Since(began), cfg.Net.DialTimeout)
			require.LessOrEqual(t, dials.Load(), int64(2), "one that closes without a word is tried twice")
		})
	}
}

// M9: sessions of ten seconds, each mechanism under load for longer than that: every message is
// acknowledged and there once, and the connections are the ones of the beginning.
func TestM9KafkaReauthentication(t *testing.T) {
	length := 12 * time.Second
	if os.Getenv("KBENCH_SOAK") == "1" {
		length = 2 * time.Minute
	}
	cluster := kafkatest.Shared(t, 1)
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			b := open(t, listener(t, cluster, shortSessions), filepath.Join(cluster.Dir, "client-"+m+"-ssl.properties"))
			topic := b.topic(t)
			sent := underLoad(t, b, topic, length)
			renewed := b.said.times("authenticated again")
			t.Logf("%d messages, %d connections, sessions renewed %d times", sent, b.dials.Load(), renewed)
			require.GreaterOrEqual(t, renewed, int(length/(10*time.Second)))
			require.LessOrEqual(t, b.dials.Load(), int64(2), "the bootstrap connection and the node's")
			require.Zero(t, b.said.times("connection closed"))
			got := b.readBack(t, topic, sent)
			require.Len(t, got, sent, "each once")
		})
	}
}

// underLoad produces a message every two milliseconds, and waits for the outcome of all.
func underLoad(t *testing.T, b *bed, topic string, length time.Duration) (sent int) {
	p, err := client.NewAsyncProducerFromClient(b.c)
	require.NoError(t, err)
	var mu sync.Mutex
	var failures []error
	outcome := func(_ *client.ProducerMessage, err error) {
		if err != nil {
			mu.Lock()
			failures = append(failures, err)
			mu.Unlock()
		}
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < length; sent++ {
		<-tick.C
		require.NoError(t, p.Produce(b.ctx, &client.ProducerMessage{Topic: topic, Value: strconv.AppendInt(nil, int64(sent), 10)}, outcome))
	}
	require.NoError(t, p.Flush(b.ctx))
	require.NoError(t, p.Close(b.ctx))
	require.NoError(t, errors.Join(failures...))
	return sent
}

func unsecured(subject string, life time.Duration) string {
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, time.Now().Add(-2*time.Hour).Unix(), time.Now().Add(life).Unix())
	return strings.Join([]string{encode(`{"alg":"none"}`), encode(claims), ""}, ".")
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
