package conn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// reauthBroker grants sessions of an hour and notes how many requests were unanswered when a
// handshake came.
type reauthBroker struct {
	mu         sync.Mutex
	handshakes []time.Time
	fail       bool
}

func (b *reauthBroker) handle(r rawserver.Request) rawserver.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Decode().(type) {
	case *kmsg.SASLHandshakeRequest:
		b.handshakes = append(b.handshakes, time.Now())
		return rawserver.Respond(r, kmsg.NewPtrSASLHandshakeResponse())
	case *kmsg.SASLAuthenticateRequest:
		resp := authResponse("", 0, "")
		if b.fail && len(b.handshakes) > 1 {
			resp = authResponse("", 58, "the password was changed")
		}
		resp.SessionLifetimeMillis = time.Hour.Milliseconds()
		return rawserver.Respond(r, resp)
	}
	return rawserver.Reply{Delay: time.Second, Body: r.Body}
}

// M9: the session is renewed at 85 … 95 % of its life, under load, and nothing is lost.
func TestM9Reauthentication(t *testing.T) {
	broker := &reauthBroker{}
	o := Options{SASL: must(PLAIN("user", password)), MaxInFlight: 5}
	inBubble(t, rawserver.Script{Handle: broker.handle}, o, func(t *testing.T, c *Conn) {
		began := time.Now()
		k := newCounter(100_000)
		sent := 0
		// A request a second, each answered after a second: one is in flight whenever a session
		// must be renewed.
		for time.Since(began) < 3*time.Hour {
			send(t, c, k.call(sent))
			sent++
			if sent%2 == 0 {
				time.Sleep(500 * time.Millisecond)
			}
		}
		for range sent {
			require.NoError(t, (<-k.got).err)
		}
		require.NoError(t, c.Err())
		require.Len(t, broker.handshakes, 4)
		for i := 1; i < len(broker.handshakes); i++ {
			after := broker.handshakes[i].Sub(broker.handshakes[i-1])
			require.GreaterOrEqual(t, after, 51*time.Minute)
			require.LessOrEqual(t, after, 57*time.Minute+10*time.Second)
		}
	})
}

// M9: with requests in flight the renewal waits for their answers, and what comes later for it.
func TestM9ReauthenticationWaitsForWhatIsInFlight(t *testing.T) {
	var mu sync.Mutex
	var seen []int16
	gateOpen := false
	handle := func(r rawserver.Request) rawserver.Reply {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Key)
		switch r.Key {
		case 17:
			return rawserver.Respond(r, kmsg.NewPtrSASLHandshakeResponse())
		case 36:
			resp := authResponse("", 0, "")
			resp.SessionLifetimeMillis = time.Hour.Milliseconds()
			return rawserver.Respond(r, resp)
		}
		if !gateOpen {
			gateOpen = true
			return rawserver.Reply{Delay: 20 * time.Minute, Body: r.Body}
		}
		return rawserver.Reply{Body: r.Body}
	}
	o := Options{SASL: must(PLAIN("user", password)), MaxInFlight: 5, ReadTimeout: time.Hour}
	inBubble(t, rawserver.Script{Handle: handle}, o, func(t *testing.T, c *Conn) {
		time.Sleep(50 * time.Minute)
		k := newCounter(2)
		send(t, c, k.call(0)) // answered at 70 min; the session is renewed between 51 and 57
		time.Sleep(8 * time.Minute)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, []int16{17, 36, keyHeartbeat}, seen, "no handshake while a request is in flight")
		mu.Unlock()
		send(t, c, k.call(1)) // waits for the renewal
		for i := range 2 {
			require.NoError(t, (<-k.got).err, i)
		}
		mu.Lock()
		require.Equal(t, []int16{17, 36, keyHeartbeat, 17, 36, keyHeartbeat}, seen)
		mu.Unlock()
	})
}

func TestM9ReauthenticationThatFailsClosesTheConnection(t *testing.T) {
	broker := &reauthBroker{fail: true}
	inBubble(t, rawserver.Script{Handle: broker.handle}, Options{SASL: must(PLAIN("user", password))}, func(t *testing.T, c *Conn) {
		<-c.Done()
		var auth *AuthError
		require.ErrorAs(t, c.Err(), &auth)
		require.ErrorContains(t, c.Err(), "the password was changed")
		require.Equal(t, 1, strings.Count(c.Err().Error(), "broker "+c.Addr()), "said once: %v", c.Err())
		require.Equal(t, wire.Fatal|wire.DefinitelyRefused, wire.Classify(c.Err()))
	})
}

func TestReauthAfter(t *testing.T) {
	require.Equal(t, 51*time.Minute, reauthAfter(time.Hour, 0))
	require.Equal(t, 57*time.Minute, reauthAfter(time.Hour, 1))
	require.Equal(t, 10*time.Millisecond, reauthAfter(1, 0), "no busy loop")
	require.Zero(t, lifetime(-5))
	require.Equal(t, 365*24*time.Hour, lifetime(1<<62), "no overflow")
}

func TestReauthenticationAgainstKfake(t *testing.T) {
	addr := saslCluster(t, kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "100"}))
	c, err := Open(t.Context(), addr, Options{SASL: must(SCRAM256("user", password))})
	require.NoError(t, err)
	defer c.Close(nil)
	for began := time.Now(); time.Since(began) < 500*time.Millisecond; {
		_, err := c.Do(t.Context(), metadata())
		require.NoError(t, err)
	}
	require.NotNil(t, c.reauth)
}

// M9: a token takes ten minutes to come. Requests flow meanwhile, and only the exchange itself
// makes them wait.
func TestM9RequestsFlowWhileATokenIsFetched(t *testing.T) {
	broker := &reauthBroker{}
	asked := 0
	token := func(ctx context.Context) (string, map[string]string, error) {
		if asked++; asked == 1 {
			return "first", nil, nil
		}
		select {
		case <-time.After(2 * time.Minute):
			return "later", nil, nil
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
	o := Options{SASL: must(OAUTHBEARER(token)), MaxInFlight: 1, DialTimeout: time.Hour}
	inBubble(t, rawserver.Script{Handle: broker.handle}, o, func(t *testing.T, c *Conn) {
		k := newCounter(10_000)
		slowest := time.Duration(0)
		for i := range 5400 { // an hour and a half
			began := time.Now()
			send(t, c, k.call(i))
			require.NoError(t, (<-k.got).err)
			slowest = max(slowest, time.Since(began))
		}
		synctest.Wait()
		require.Equal(t, 2, asked)
		require.Len(t, broker.handshakes, 2)
		require.Less(t, slowest, 3*time.Second)
	})
}

// M9: the source of tokens fails, and there is time left: it is asked again, not at once, and the
// connection lives on. When it fails until the end, the connection ends, in a way that may pass.
func TestM9ATokenThatDoesNotCome(t *testing.T) {
	for _, row := range []struct {
		name  string
		fails int
		dies  bool
	}{{"twice", 2, false}, {"for good", 1000, true}} {
		t.Run(row.name, func(t *testing.T) {
			broker := &reauthBroker{}
			var asked []time.Time
			token := func(context.Context) (string, map[string]string, error) {
				asked = append(asked, time.Now())
				if n := len(asked); n > 1 && n <= 1+row.fails {
					return "", nil, errors.New("identity server is down")
				}
				return "token", nil, nil
			}
			o := Options{SASL: must(OAUTHBEARER(token))}
			inBubble(t, rawserver.Script{Handle: broker.handle}, o, func(t *testing.T, c *Conn) {
				opened := time.Now()
				time.Sleep(62 * time.Minute)
				synctest.Wait()
				require.Less(t, len(asked), 15, "no storm")
				for _, at := range asked[1:] {
					require.Less(t, at.Sub(opened), time.Hour)
				}
				if row.dies {
					require.ErrorIs(t, c.Err(), ErrNoToken)
					require.True(t, wire.Classify(c.Err()).Has(wire.Retriable))
					return
				}
				require.NoError(t, c.Err())
				require.Len(t, broker.handshakes, 2)
			})
		})
	}
}

// A connection that is closed while a token is on its way leaves nothing behind; inBubble waits
// for every goroutine.
func TestM9CloseWhileATokenIsFetched(t *testing.T) {
	broker := &reauthBroker{}
	asked := 0
	token := func(ctx context.Context) (string, map[string]string, error) {
		if asked++; asked == 1 {
			return "first", nil, nil
		}
		<-ctx.Done()
		return "", nil, ctx.Err()
	}
	o := Options{SASL: must(OAUTHBEARER(token)), DialTimeout: 24 * time.Hour}
	inBubble(t, rawserver.Script{Handle: broker.handle}, o, func(t *testing.T, c *Conn) {
		time.Sleep(58 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, asked)
		began := time.Now()
		c.Close(nil)
		synctest.Wait()
		require.Zero(t, time.Since(began))
	})
}
