package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

func TestRefusalWaitsLongerAndLonger(t *testing.T) {
	now := time.Now()
	fatal := &conn.AuthError{Addr: "b:1", Mechanism: "PLAIN"}
	var r lockout
	require.NoError(t, r.at(now))
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		r.note(fatal, now)
		require.Equal(t, error(fatal), r.at(now))
		require.Error(t, r.at(now.Add(want*time.Second-1)))
		now = now.Add(want * time.Second)
		require.NoError(t, r.at(now))
	}
	r.note(errors.Join(wire.ErrLeaderNotAvailable), now)
	require.NoError(t, r.at(now), "what may pass is no refusal")
	r.note(fatal, now)
	require.Error(t, r.at(now))
	r.note(nil, now)
	require.NoError(t, r.at(now))
}

// A broker that refuses the password is not asked for every message: in five minutes of somebody
// wanting the connection every ten milliseconds there are a dozen logins.
func TestNoStormOfLoginsAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accept := false
		s := rawserver.StartPipes(rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
			if r.Key == 17 {
				return rawserver.Respond(r, kmsg.NewPtrSASLHandshakeResponse())
			}
			resp := kmsg.NewPtrSASLAuthenticateResponse()
			if !accept {
				resp.ErrorCode = wire.ErrSASLAuthenticationFailed.Code
			}
			return rawserver.Respond(r, resp)
		}})
		defer s.Close()
		auth, err := conn.PLAIN("user", "wrong")
		require.NoError(t, err)
		life, end := context.WithCancel(t.Context())
		defer end()
		b := newBroker(life, 1, "broker:9092", conn.Options{
			SASL: auth, Dial: func(context.Context, string, string) (net.Conn, error) { return s.Pipe() },
		})
		defer b.close(ErrClosed)
		for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(10 * time.Millisecond) {
			var refused *conn.AuthError
			require.ErrorAs(t, b.Open(life), &refused)
			require.True(t, IsRefusal(b.Open(life)))
		}
		require.Less(t, s.Accepted(), 15)
		require.Greater(t, s.Accepted(), 5, "it is asked now and then")
		accept = true
		time.Sleep(mostRefusal)
		require.NoError(t, b.Open(life))
	})
}

func TestNoBrokersSaysWhy(t *testing.T) {
	refused := &addressError{"a:1", &conn.AuthError{Addr: "a:1", Mechanism: "PLAIN", Text: "no"}}
	lost := &addressError{"b:1", &conn.ClosedError{Addr: "b:1", Cause: conn.ErrClosedByBroker}}
	for _, row := range []struct {
		failures []error
		want     string
	}{
		{[]error{refused}, "broker a:1: PLAIN authentication failed: no"},
		{[]error{lost}, "no broker could be reached: connection to broker b:1: closed by broker"},
		{[]error{refused, lost}, "no broker could be reached: broker a:1: PLAIN authentication failed: no; connection to broker b:1: closed by broker"},
	} {
		err := noBrokers(row.failures)
		require.EqualError(t, err, row.want)
		require.ErrorIs(t, err, ErrNoBrokers)
		require.Equal(t, slices.Contains(row.failures, error(lost)), errors.Is(err, conn.ErrClosedByBroker))
	}
}
