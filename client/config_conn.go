package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
)

// connOptions are the settings of connections in the form of package conn. panics counts those of
// the user's functions among them.
func (c *Config) connOptions(panics *atomic.Int64) (conn.Options, error) {
	auth, err := c.Net.SASL.authenticator(panics)
	if err != nil {
		return conn.Options{}, fmt.Errorf("net.sasl: %w", err)
	}
	return conn.Options{
		Dial: c.Net.dialler(panics), DialTimeout: c.Net.DialTimeout, RequestTimeout: c.Net.RequestTimeout, ReadTimeout: c.Net.ReadTimeout,
		WriteTimeout: c.Net.WriteTimeout, KeepAlive: c.Net.KeepAlive, TLS: c.Net.TLS, SASL: auth,
		ClientID: c.ClientID, MaxInFlight: c.Net.MaxOpenRequests, MaxResponseBytes: c.Net.MaxResponseBytes,
		MaxVersions: c.Version.caps, Logger: c.Logger,
	}, nil
}

// answerTimeout is how long a broker may take to answer, beyond what the request lets it wait.
func (n NetConfig) answerTimeout() time.Duration {
	if n.RequestTimeout > 0 {
		return n.RequestTimeout
	}
	return n.ReadTimeout
}

// authenticator is nil without a mechanism.
func (s SASLConfig) authenticator(panics *atomic.Int64) (conn.Authenticator, error) {
	switch s.Mechanism {
	case "PLAIN":
		return conn.PLAIN(s.User, s.Password)
	case "SCRAM-SHA-256":
		return conn.SCRAM256(s.User, s.Password)
	case "SCRAM-SHA-512":
		return conn.SCRAM512(s.User, s.Password)
	case "OAUTHBEARER":
		return conn.OAUTHBEARER(func(ctx context.Context) (string, map[string]string, error) {
			token, err := s.token(ctx, panics)
			return token, s.Extensions, err
		})
	}
	return nil, nil
}

// token asks the user's function, whose panics stay here.
func (s SASLConfig) token(ctx context.Context, panics *atomic.Int64) (token string, err error) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
			err = &PanicError{Where: "the source of tokens (net.sasl)", Value: v}
		}
	}()
	return s.Token(ctx)
}

// dialler is the user's way to open connections, whose panics become errors; nil for none.
func (n NetConfig) dialler(panics *atomic.Int64) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.Dialer == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		defer func() {
			if v := recover(); v != nil {
				panics.Add(1)
				err = &PanicError{Where: "net.dialer", Value: v}
			}
		}()
		return n.Dialer(ctx, network, addr)
	}
}

// String says how, and never with what secret.
func (s SASLConfig) String() string {
	if s.Mechanism == "" {
		return "none"
	}
	return s.Mechanism + " as " + s.User
}

// GoString is String, so that %#v shows no secret either.
func (s SASLConfig) GoString() string { return s.String() }

// LogValue is String, so that no handler of logs looks inside.
func (s SASLConfig) LogValue() slog.Value { return slog.StringValue(s.String()) }
