package conn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// certificate makes a self-signed one for names, valid until then.
func certificate(t testing.TB, until time.Time, names ...string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	good, pool := certificate(t, time.Now().Add(time.Hour), "127.0.0.1", "broker.test")
	s := start(t, rawserver.Script{Handle: echo, TLS: &tls.Config{Certificates: []tls.Certificate{good}}})
	c := dial(t, s, Options{TLS: &tls.Config{RootCAs: pool}, MaxInFlight: 5})
	k := newCounter(100)
	for i := range 100 {
		call := k.call(i)
		if i%10 == 0 {
			call.Body = append(call.Body, make([]byte, 100_000))
		}
		send(t, c, call)
	}
	for range 100 {
		require.NoError(t, wait(t, k.got).err)
	}
}

// accepted runs a server that does f with each connection.
func accepted(t *testing.T, f func(net.Conn)) *rawserver.Server {
	return start(t, rawserver.Script{Accepted: f})
}

// afterRequest reads what comes first, then does f.
func afterRequest(f func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		var b [512]byte
		_, _ = c.Read(b[:])
		f(c)
	}
}

func TestWhyAConnectionCannotBeOpened(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	good, pool := certificate(t, soon, "127.0.0.1")
	other, otherPool := certificate(t, soon, "other.test")
	expired, expiredPool := certificate(t, time.Now().Add(-time.Hour), "127.0.0.1")
	tlsServer := func(c *tls.Config) *rawserver.Server { return start(t, rawserver.Script{Handle: echo, TLS: c}) }
	serve := func(cert tls.Certificate) *rawserver.Server {
		return tlsServer(&tls.Config{Certificates: []tls.Certificate{cert}})
	}
	plain := start(t, rawserver.Script{Handle: echo})
	closedServer := start(t, rawserver.Script{})
	closedServer.Close()
	short := 300 * time.Millisecond

	for _, row := range []struct {
		name  string
		addr  string
		o     Options
		kind  error
		class wire.Class
	}{
		{"nothing listens", closedServer.Addr(), Options{}, ErrRefused, wire.Retriable},
		{"an address without a port", "localhost", Options{}, ErrAddress, wire.Fatal},
		{"an address without a port, TLS", "localhost", Options{TLS: &tls.Config{}}, ErrAddress, wire.Fatal},
		{"a dial that takes too long", "x:1", Options{DialTimeout: short, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, ErrDialSlow, wire.Retriable},
		{"a dial that fails", "x:1", Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no route")
		}}, ErrDial, wire.Retriable},
		{"plaintext to a TLS port of Go", serve(good).Addr(), Options{}, ErrClosedAtOnce, wire.Retriable},
		{"plaintext to a TLS port that answers with an alert (7 bytes)", accepted(t, afterRequest(func(c net.Conn) {
			_, _ = c.Write([]byte{0x15, 3, 3, 0, 2, 2, 0x50})
		})).Addr(), Options{}, ErrTLSPort, wire.Fatal},
		{"plaintext to a port that closes at once", accepted(t, func(net.Conn) {}).Addr(), Options{}, ErrClosedAtOnce, wire.Retriable},
		{"an HTTP server", accepted(t, afterRequest(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		})).Addr(), Options{}, ErrNotKafka, wire.Fatal},
		{"an SSH server", accepted(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n"); time.Sleep(short) }).Addr(), Options{}, ErrNotKafka, wire.Fatal},
		{"a server that says nothing", accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }).Addr(), Options{DialTimeout: short}, ErrNoAnswer, wire.Retriable},
		{"TLS to a server that says nothing", accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }).Addr(), Options{DialTimeout: short, TLS: &tls.Config{}}, ErrTLSNoAnswer, wire.Retriable},
		{"TLS to a plaintext port", plain.Addr(), Options{TLS: &tls.Config{RootCAs: pool}}, ErrTLSHangup, wire.Retriable},
		{"TLS to an HTTP port", accepted(t, afterRequest(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })).Addr(), Options{TLS: &tls.Config{}}, ErrPlaintextPort, wire.Fatal},
		{"an unknown authority", serve(good).Addr(), Options{TLS: &tls.Config{RootCAs: otherPool}}, ErrCertificate, wire.Fatal},
		{"a certificate of another name", serve(other).Addr(), Options{TLS: &tls.Config{RootCAs: otherPool}}, ErrCertificateName, wire.Fatal},
		{"an expired certificate", serve(expired).Addr(), Options{TLS: &tls.Config{RootCAs: expiredPool}}, ErrCertificateDate, wire.Fatal},
		{"a broker that closes after the handshake", start(t, rawserver.Script{
			TLS: &tls.Config{Certificates: []tls.Certificate{good}}, Accepted: func(c net.Conn) { _ = c.(*tls.Conn).Handshake() },
		}).Addr(), Options{TLS: &tls.Config{RootCAs: pool}}, ErrClosedAfterTLS, wire.Retriable},
		{"a broker that closes during the handshake", accepted(t, afterRequest(func(net.Conn) {})).Addr(), Options{TLS: &tls.Config{RootCAs: pool}}, ErrTLSHangup, wire.Retriable},
		{"a client certificate is asked for (TLS 1.3)", tlsServer(&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}).Addr(), Options{TLS: &tls.Config{RootCAs: pool}}, ErrClientCertificate, wire.Fatal},
		{"a client certificate is asked for (TLS 1.2)", tlsServer(&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}).Addr(), Options{TLS: &tls.Config{RootCAs: pool}}, ErrClientCertificate, wire.Fatal},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := Open(t.Context(), row.addr, row.o)
			require.Nil(t, c)
			require.ErrorIs(t, err, row.kind)
			var opened *OpenError
			require.ErrorAs(t, err, &opened)
			require.ErrorContains(t, err, row.addr)
			require.True(t, wire.Classify(err).Has(row.class|wire.DefinitelyRefused), "%v", err)
			t.Log(err)
		})
	}
}

func TestOpenObeysItsContext(t *testing.T) {
	s := accepted(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, cancel)
	defer timer.Stop()
	_, err := Open(ctx, s.Addr(), Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrCancelled)
}

func TestVersionsAreNegotiated(t *testing.T) {
	s := start(t, rawserver.Script{
		Handle:   echo,
		Versions: map[int16]wire.Range{18: {Min: 0, Max: 3}, 0: {Min: 0, Max: 13}, 1: {Min: 4, Max: 11}, 3: {Min: 0, Max: 3}},
		Features: map[string]int16{"transaction.version": 2},
	})
	c := dial(t, s, Options{MaxVersions: func(key int16) (int16, bool) { return 9, key == 1 }})
	v, err := c.Version(0)
	require.NoError(t, err)
	require.Equal(t, int16(12), v)
	v, err = c.version(0, 11)
	require.NoError(t, err)
	require.Equal(t, int16(11), v)
	v, err = c.Version(1)
	require.NoError(t, err)
	require.Equal(t, int16(9), v, "the user's cap")
	_, err = c.Do(t.Context(), metadata())
	var version *wire.VersionError
	require.ErrorAs(t, err, &version)
	require.ErrorContains(t, err, "no common version of Metadata: we speak 4–13, broker "+s.Addr()+" speaks 0–3")
	_, err = c.Version(68)
	require.ErrorAs(t, err, &version)
	require.Equal(t, int16(2), c.Feature("transaction.version"))
	require.Zero(t, c.Feature("group.version"))
}

func TestApiVersionsFallsBack(t *testing.T) {
	for _, row := range []struct {
		name  string
		own   wire.Range
		asked []int16
	}{
		{"our highest is known", wire.Range{Max: 4}, []int16{4}},
		{"Kafka 2.4 … 3.8 name their highest (KIP-511)", wire.Range{Max: 3}, []int16{4, 3}},
		{"brokers before 2.4", wire.Range{Max: 2}, []int16{4, 2}},
		{"a broker that knows version 0 alone", wire.Range{Max: 0}, []int16{4, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := make(chan int16, 10)
			s := start(t, rawserver.Script{RawAPIVersions: true, Handle: func(r rawserver.Request) rawserver.Reply {
				asked <- r.Version
				resp := kmsg.NewPtrApiVersionsResponse()
				resp.SetVersion(r.Version)
				if r.Version > row.own.Max {
					resp.ErrorCode = 35
					resp.SetVersion(0)
				}
				k := kmsg.NewApiVersionsResponseApiKey()
				k.ApiKey, k.MaxVersion = 18, row.own.Max
				resp.ApiKeys = append(resp.ApiKeys, k)
				return rawserver.Reply{Body: resp.AppendTo(nil)}
			}})
			c := dial(t, s, Options{})
			v, err := c.Version(18)
			require.NoError(t, err)
			require.Equal(t, row.asked[len(row.asked)-1], v)
			for _, want := range row.asked {
				require.Equal(t, want, wait(t, asked))
			}
		})
	}
}

func TestApiVersionsThatNeverAgreesEnds(t *testing.T) {
	s := start(t, rawserver.Script{RawAPIVersions: true, Handle: func(rawserver.Request) rawserver.Reply {
		return rawserver.Reply{Body: []byte{0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 3}}
	}})
	_, err := Open(t.Context(), s.Addr(), Options{})
	require.ErrorIs(t, err, wire.ErrUnsupportedVersion)
}

func TestAgainstKfake(t *testing.T) {
	for _, row := range []struct {
		name string
		max  *kversion.Versions
		want int16 // Metadata
	}{
		{"newest", nil, 13},
		{"as old as Kafka 2.1", kversion.V2_1_0(), 7},
		{"Kafka 4.0", kversion.V4_0_0(), 13},
	} {
		t.Run(row.name, func(t *testing.T) {
			opts := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, "a")}
			if row.max != nil {
				opts = append(opts, kfake.MaxVersions(row.max))
			}
			cluster, err := kfake.NewCluster(opts...)
			require.NoError(t, err)
			defer cluster.Close()
			c, err := Open(t.Context(), cluster.ListenAddrs()[0], Options{})
			require.NoError(t, err)
			defer c.Close(nil)
			req := kmsg.NewPtrMetadataRequest()
			resp, err := c.Do(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, row.want, resp.GetVersion())
			require.Len(t, resp.(*kmsg.MetadataResponse).Topics[0].Partitions, 3)
		})
	}
}

func TestDoObeysThrottleTimes(t *testing.T) { // P28
	s := start(t, rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
		resp := kmsg.NewPtrMetadataResponse()
		resp.ThrottleMillis = 3_600_000
		return rawserver.Respond(r, resp)
	}})
	c := dial(t, s, Options{})
	_, err := c.Do(t.Context(), metadata())
	require.NoError(t, err)
	_, err = c.Do(ctxFor(t, 50*time.Millisecond), metadata())
	require.ErrorContains(t, err, "throttling")
	require.Equal(t, wire.DefinitelyRefused, wire.Classify(err))
}

func TestDoRefusesAcksZero(t *testing.T) {
	s := start(t, rawserver.Script{})
	c := dial(t, s, Options{})
	req := kmsg.NewPtrProduceRequest()
	req.Acks = 0
	_, err := c.Do(t.Context(), req)
	require.ErrorIs(t, err, ErrNoResponse)
}
