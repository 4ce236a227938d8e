package conn

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

func TestCloseDecidesEverythingOnce(t *testing.T) {
	s := start(t, rawserver.Script{Handle: swallow})
	c := dial(t, s, Options{MaxInFlight: 5})
	k := newCounter(5)
	for i := range 5 {
		send(t, c, k.call(i))
	}
	acquired := make(chan error, 1)
	go func() { acquired <- c.Acquire(t.Context()) }() // ends with the connection; the test waits for it
	cause := errors.New("the test is over")
	c.Close(cause)
	c.Close(errors.New("a second close does not count"))
	for i := range 5 {
		o := wait(t, k.got)
		require.ErrorIs(t, o.err, cause)
		require.ErrorContains(t, o.err, s.Addr())
		require.False(t, o.t.Written.IsZero())
		require.Equal(t, 1, k.count(i))
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, k.order)
	require.ErrorIs(t, wait(t, acquired), cause)
	<-c.Done()
	require.ErrorIs(t, c.Err(), cause)
	require.ErrorIs(t, c.Submit(k.call(5)), cause)
	require.Zero(t, k.count(5))
	require.Zero(t, c.InFlight())
}

// Closes while callers write and answers arrive: each call is decided once, either way.
func TestEachCallIsDecidedOnceWhateverCloses(t *testing.T) {
	for _, row := range []struct {
		name  string
		close func(s *rawserver.Server, c *Conn)
	}{
		{"we close", func(_ *rawserver.Server, c *Conn) { c.Close(nil) }},
		{"the broker closes", func(s *rawserver.Server, _ *Conn) { s.CloseConnections() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, rawserver.Script{Handle: echo})
			for round := range 20 {
				c := dial(t, s, Options{MaxInFlight: 8})
				k := newCounter(4 * 1000)
				refused := make([]int, 4000)
				var wg sync.WaitGroup
				for g := range 4 {
					wg.Go(func() {
						for i := g * 1000; i < g*1000+1000; i++ {
							if c.Acquire(t.Context()) != nil {
								return
							}
							if c.Submit(k.call(i)) != nil {
								refused[i]++
							}
						}
					})
				}
				for range round * 5 {
					wait(t, k.got)
				}
				row.close(s, c)
				wg.Wait()
				<-c.Done()
				require.Eventually(t, func() bool { return c.InFlight() == 0 }, 10*time.Second, time.Millisecond)
				k.mu.Lock()
				for id, n := range k.calls {
					require.Equal(t, 1, n+refused[id], "call %d", id)
				}
				k.mu.Unlock()
			}
		})
	}
}

func TestBrokerClosesAnIdleConnection(t *testing.T) { // M8
	s := start(t, rawserver.Script{Handle: echo})
	c := dial(t, s, Options{})
	k := newCounter(2)
	send(t, c, k.call(0))
	require.NoError(t, wait(t, k.got).err)
	s.CloseConnections()
	wait(t, c.Done())
	err := c.Acquire(t.Context())
	require.ErrorIs(t, err, ErrClosedByBroker)
	require.ErrorContains(t, err, "closed by broker while idle")
	var closed *ClosedError
	require.ErrorAs(t, err, &closed)
	require.False(t, closed.Sent, "safe to send on another connection")
	require.Equal(t, wire.Retriable|wire.RefreshMetadata|wire.DefinitelyRefused, wire.Classify(err))
}

func TestBrokerClosesWithRequestsInFlight(t *testing.T) { // P2
	calls := 0
	s := start(t, rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
		calls++
		whole := rawserver.Frame(r, r.Body)
		switch calls {
		case 1:
			return rawserver.Reply{Raw: whole}
		default:
			return rawserver.Reply{Raw: whole[:len(whole)-3], Close: true}
		}
	}})
	c := dial(t, s, Options{MaxInFlight: 5})
	k := newCounter(3)
	send(t, c, k.call(0))
	require.NoError(t, wait(t, k.got).err)
	send(t, c, k.call(1))
	o := wait(t, k.got)
	require.ErrorIs(t, o.err, ErrClosedByBroker)
	require.True(t, wire.Classify(o.err).Has(wire.OutcomeUnknown|wire.Retriable))
	require.Equal(t, 1, k.count(1))
}

// The listener wants SASL, we have none: Kafka answers ApiVersions and closes at the next request.
func TestMissingSASLIsHinted(t *testing.T) {
	s := start(t, rawserver.Script{Handle: func(rawserver.Request) rawserver.Reply { return rawserver.Reply{Close: true} }})
	c := dial(t, s, Options{})
	_, err := c.Do(t.Context(), metadata())
	require.ErrorIs(t, err, ErrClosedByBroker)
	require.ErrorContains(t, err, "may ask for SASL authentication, and none is configured")
}

func TestHostileAnswers(t *testing.T) {
	for _, row := range []struct {
		name  string
		reply func(rawserver.Request) rawserver.Reply
		want  string
	}{
		{"a length far over the limit", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 2}}
		}, "an answer of 2147483647 bytes (allowed are 4 … 1000)"},
		{"a length just over the limit", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0, 0, 0x03, 0xe9, 0, 0, 0, 2}}
		}, "an answer of 1001 bytes"},
		{"a negative length", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2}}
		}, "an answer of -1 bytes"},
		{"a length without room for the correlation id", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0, 0, 0, 3, 0, 0, 0, 2}}
		}, "an answer of 3 bytes"},
		{"a wrong correlation id", func(r rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: rawserver.FrameAs(r, r.Corr+1, r.Body)}
		}, "an answer with correlation id 3 where 2 is awaited"},
		{"two answers to one request", func(r rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: append(rawserver.Frame(r, r.Body), rawserver.Frame(r, r.Body)...)}
		}, "an answer with correlation id 2 while none is awaited"},
		{"tagged fields in the header that go past the answer", func(r rawserver.Request) rawserver.Reply {
			b := rawserver.Frame(r, []byte{0, 0xff, 0x7f})
			b[8] = 1
			return rawserver.Reply{Raw: b}
		}, "length or count out of bounds"},
		{"a header whose tag count never ends", func(r rawserver.Request) rawserver.Reply {
			b := rawserver.Frame(r, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
			b[8] = 0xff
			return rawserver.Reply{Raw: b}
		}, "variable-length integer is too long"},
		{"HTTP", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte("HTTP/1.1 400 Bad Request\r\n\r\n")}
		}, "an answer of 1213486160 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, rawserver.Script{Handle: row.reply, Versions: map[int16]wire.Range{18: {Max: 4}}})
			c := dial(t, s, Options{MaxInFlight: 2, MaxResponseBytes: 1000})
			k := newCounter(1)
			require.NoError(t, c.Acquire(t.Context()))
			refused := 0
			if c.Submit(k.call(0)) != nil { // the answer overtook the end of the write
				refused = 1
			} else {
				wait(t, k.got)
			}
			wait(t, c.Done())
			require.ErrorContains(t, c.Err(), row.want)
			var protocol *ProtocolError
			require.ErrorAs(t, c.Err(), &protocol)
			require.Equal(t, 1, k.count(0)+refused)
		})
	}
}

func TestTaggedFieldsInResponseHeadersAreSkipped(t *testing.T) {
	s := start(t, rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
		b := rawserver.Frame(r, append([]byte{9, 3, 'a', 'b', 'c', 200, 1, 0}, "body"...))
		b[8] = 2
		return rawserver.Reply{Raw: b}
	}})
	c := dial(t, s, Options{})
	k := newCounter(1)
	send(t, c, k.call(0))
	require.Equal(t, "body", string(wait(t, k.got).body))
}

func TestUndecodableAnswer(t *testing.T) {
	s := start(t, rawserver.Script{Handle: func(rawserver.Request) rawserver.Reply {
		return rawserver.Reply{Body: []byte{1, 2, 3}}
	}})
	c := dial(t, s, Options{})
	_, err := c.Do(t.Context(), metadata())
	var decode *DecodeError
	require.ErrorAs(t, err, &decode)
	require.ErrorContains(t, err, "cannot decode the answer to Metadata version 13")
	require.NoError(t, c.Err(), "the frame was fine, so the connection is")
}

// A peer that goes away at once, while its request is still being written.
func TestWriteToAClosedPeer(t *testing.T) {
	s := start(t, rawserver.Script{Opened: func(c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}})
	c := dial(t, s, Options{MaxInFlight: 100})
	k := newCounter(1000)
	body := net.Buffers{make([]byte, 1<<20)}
	refused := 0
	for i := range 100 {
		call := k.call(i)
		call.Body = body
		if c.Acquire(t.Context()) != nil {
			break
		}
		if err := c.Submit(call); err != nil {
			refused++
			require.Zero(t, k.count(i))
			require.ErrorIs(t, err, ErrClosedByBroker)
			break
		}
	}
	wait(t, c.Done())
	require.ErrorIs(t, c.Err(), ErrClosedByBroker)
	require.LessOrEqual(t, refused, 1)
}
