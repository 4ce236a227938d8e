package conn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

const password = "pencil-äöü,=42"

func must(a Authenticator, err error) Authenticator {
	if err != nil {
		panic(err)
	}
	return a
}

func saslCluster(t *testing.T, opts ...kfake.Opt) string {
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "user", password),
		kfake.Superuser("SCRAM-SHA-256", "user", password),
		kfake.Superuser("SCRAM-SHA-512", "user", password),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

func TestSASLAgainstKfake(t *testing.T) {
	addr := saslCluster(t)
	for name, mechanism := range map[string]func(user, password string) (Authenticator, error){
		"PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM256, "SCRAM-SHA-512": SCRAM512,
	} {
		t.Run(name, func(t *testing.T) {
			right := must(mechanism("user", password))
			require.Equal(t, name, right.Mechanism())
			for range 2 { // an Authenticator serves many connections
				c, err := Open(t.Context(), addr, Options{SASL: right})
				require.NoError(t, err)
				_, err = c.Do(t.Context(), metadata())
				c.Close(nil)
				require.NoError(t, err)
			}
			_, err := Open(t.Context(), addr, Options{SASL: must(mechanism("user", password+"!"))})
			require.ErrorIs(t, err, ErrAuthHangup, "kfake closes without a word")
			require.NotContains(t, err.Error(), "pencil")
		})
	}
}

func TestWrongMechanismListsTheBrokers(t *testing.T) {
	token := func(context.Context) (string, map[string]string, error) { return "t", nil, nil }
	_, err := Open(t.Context(), saslCluster(t), Options{SASL: must(OAUTHBEARER(token))})
	var mechanism *MechanismError
	require.ErrorAs(t, err, &mechanism)
	require.ErrorContains(t, err, "does not offer the SASL mechanism OAUTHBEARER on this listener; use one of: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512")
	require.True(t, wire.Classify(err).Has(wire.Fatal))
}

// saslBroker plays the broker's side of SASL: respond gets each SaslAuthenticate.
func saslBroker(respond func(n int, auth []byte) *kmsg.SASLAuthenticateResponse) func(rawserver.Request) rawserver.Reply {
	n := 0
	return func(r rawserver.Request) rawserver.Reply {
		switch req := r.Decode().(type) {
		case *kmsg.SASLHandshakeRequest:
			return rawserver.Respond(r, kmsg.NewPtrSASLHandshakeResponse())
		case *kmsg.SASLAuthenticateRequest:
			n++
			return rawserver.Respond(r, respond(n, req.SASLAuthBytes))
		}
		return echo(r)
	}
}

func authResponse(bytes string, code int16, message string) *kmsg.SASLAuthenticateResponse {
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.SASLAuthBytes, resp.ErrorCode = []byte(bytes), code
	if message != "" {
		resp.ErrorMessage = &message
	}
	return resp
}

func TestBrokersThatRefuseOrCheat(t *testing.T) {
	token := must(OAUTHBEARER(func(context.Context) (string, map[string]string, error) {
		return "top-secret-token", map[string]string{"logicalCluster": "lkc-1"}, nil
	}))
	for _, row := range []struct {
		name    string
		auth    Authenticator
		respond func(n int, auth []byte) *kmsg.SASLAuthenticateResponse
		want    string
	}{
		{"a broker's error, which repeats the password", must(PLAIN("user", password)),
			func(_ int, auth []byte) *kmsg.SASLAuthenticateResponse {
				return authResponse("", 58, "bad password "+password+" for user")
			}, "bad password *** for user"},
		{"a refused token, which the broker repeats", token, func(n int, auth []byte) *kmsg.SASLAuthenticateResponse {
			if n == 1 {
				return authResponse(`{"status":"invalid_token"}`, 0, "")
			}
			require.Equal(t, "\x01", string(auth))
			return authResponse("", 58, "token top-secret-token is bad")
		}, "token *** is bad"},
		{"a refused token, and no error after it", token, func(int, []byte) *kmsg.SASLAuthenticateResponse {
			return authResponse(`{"status":"invalid_token"}`, 0, "")
		}, "the broker refused the token"},
		{"SCRAM: a nonce that is not ours", must(SCRAM256("user", password)), func(int, []byte) *kmsg.SASLAuthenticateResponse {
			return authResponse("r=other,s=QSXCR+Q6sek8bf92,i=4096", 0, "")
		}, "the broker's part of the exchange is not right"},
		{"SCRAM: iterations that would take for ever", must(SCRAM512("user", password)), func(_ int, auth []byte) *kmsg.SASLAuthenticateResponse {
			_, nonce, _ := strings.Cut(string(auth), "r=")
			return authResponse("r="+nonce+"x,s=QSXCR+Q6sek8bf92,i=2000000000", 0, "")
		}, "asks for more than 1000000 iterations"},
		{"SCRAM: too few iterations", must(SCRAM512("user", password)), func(_ int, auth []byte) *kmsg.SASLAuthenticateResponse {
			_, nonce, _ := strings.Cut(string(auth), "r=")
			return authResponse("r="+nonce+"x,s=QSXCR+Q6sek8bf92,i=1", 0, "")
		}, "too few iterations"},
		{"SCRAM: a broker that cannot prove itself", must(SCRAM256("user", password)), func(n int, auth []byte) *kmsg.SASLAuthenticateResponse {
			if n == 1 {
				_, nonce, _ := strings.Cut(string(auth), "r=")
				return authResponse("r="+nonce+"x,s=QSXCR+Q6sek8bf92,i=4096", 0, "")
			}
			return authResponse("v=AAAA", 0, "")
		}, "the broker's part of the exchange is not right"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, rawserver.Script{Handle: saslBroker(row.respond)})
			_, err := Open(t.Context(), s.Addr(), Options{SASL: row.auth})
			var auth *AuthError
			require.ErrorAs(t, err, &auth)
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "pencil")
			require.NotContains(t, err.Error(), "top-secret")
		})
	}
}

func TestOAuthBearer(t *testing.T) {
	got := make(chan string, 1)
	s := start(t, rawserver.Script{Handle: saslBroker(func(_ int, auth []byte) *kmsg.SASLAuthenticateResponse {
		got <- string(auth)
		return authResponse("", 0, "")
	})})
	c := dial(t, s, Options{SASL: must(OAUTHBEARER(func(context.Context) (string, map[string]string, error) {
		return "abc", map[string]string{"b": "2", "a": "1"}, nil
	}))})
	require.NoError(t, c.Err())
	require.Equal(t, "n,,\x01auth=Bearer abc\x01a=1\x01b=2\x01\x01", wait(t, got))

	for name, token := range map[string]func(context.Context) (string, map[string]string, error){
		"no token": func(context.Context) (string, map[string]string, error) {
			return "", nil, errors.New("identity server is down")
		},
		"an empty token": func(context.Context) (string, map[string]string, error) { return "", nil, nil },
		"a control mark": func(context.Context) (string, map[string]string, error) { return "a\x01b", nil, nil },
		"a bad extension": func(context.Context) (string, map[string]string, error) {
			return "a", map[string]string{"auth": "x"}, nil
		},
	} {
		_, err := Open(t.Context(), s.Addr(), Options{SASL: must(OAUTHBEARER(token))})
		require.ErrorIs(t, err, ErrNoToken, name)
		require.True(t, wire.Classify(err).Has(wire.Retriable|wire.DefinitelyRefused), "it may pass")
	}
}

func TestBrokersThatDoNotAuthenticate(t *testing.T) {
	for _, row := range []struct {
		name  string
		reply func(rawserver.Request) rawserver.Reply
		says  string
		class wire.Class
	}{
		{"a listener without SASL, as Kafka's answers", func(r rawserver.Request) rawserver.Reply {
			resp := kmsg.NewPtrSASLHandshakeResponse()
			resp.ErrorCode = wire.ErrIllegalSASLState.Code
			return rawserver.Respond(r, resp)
		}, "this listener does not ask for SASL: turn SASL off, or use the broker's SASL port", wire.Fatal},
		{"a broker that stops meanwhile", func(rawserver.Request) rawserver.Reply { return rawserver.Reply{Close: true} },
			"closed the connection during authentication: user, password or token may be wrong", wire.Retriable},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, rawserver.Script{Handle: row.reply})
			_, err := Open(t.Context(), s.Addr(), Options{SASL: must(PLAIN("user", password))})
			require.ErrorContains(t, err, row.says)
			require.ErrorContains(t, err, s.Addr())
			require.True(t, wire.Classify(err).Has(row.class|wire.DefinitelyRefused), "%v", err)
		})
	}
}

func TestCredentialsAreChecked(t *testing.T) {
	for _, f := range []func(user, password string) (Authenticator, error){PLAIN, SCRAM256, SCRAM512} {
		for _, c := range [][2]string{{"", "p"}, {"u", ""}, {"u", "p\x00q"}, {"u\x00", "p"}} {
			_, err := f(c[0], c[1])
			require.ErrorContains(t, err, "user and password must be given")
		}
	}
	_, err := SCRAM256("user", "pass\u0221word")
	require.ErrorContains(t, err, "SASLprep")
	require.NotContains(t, err.Error(), "word\u0221")
	_, err = OAUTHBEARER(nil)
	require.Error(t, err)
}

func TestSecretsDoNotPrint(t *testing.T) {
	o := Options{SASL: must(PLAIN("user", password))}
	o2 := Options{SASL: must(SCRAM512("user", password))}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{o, o2, o.SASL, o2.SASL, &o, secret(password)} {
			require.NotContains(t, fmt.Sprintf(format, v), "pencil", "%s of %T", format, v)
		}
	}
}
