package conn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// inBubble runs a test on a virtual clock, over a pipe.
func inBubble(t *testing.T, script rawserver.Script, o Options, test func(t *testing.T, c *Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := rawserver.StartPipes(script)
		defer s.Close()
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return s.Pipe() }
		c, err := Open(t.Context(), "pipe:9092", o)
		require.NoError(t, err)
		defer c.Close(nil)
		test(t, c)
	})
}

// swallow reads requests and never answers.
func swallow(rawserver.Request) rawserver.Reply { return rawserver.Reply{} }

func TestTimeoutDropsTheConnectionAndAllInFlight(t *testing.T) { // P29
	inBubble(t, rawserver.Script{Handle: swallow}, Options{MaxInFlight: 5, ReadTimeout: 10 * time.Second},
		func(t *testing.T, c *Conn) {
			began := time.Now()
			k := newCounter(3)
			for i := range 3 {
				send(t, c, k.call(i))
				time.Sleep(time.Second)
			}
			for range 3 {
				o := <-k.got
				require.ErrorIs(t, o.err, ErrTimeout)
				require.ErrorContains(t, o.err, "no answer to Heartbeat within 10s")
				var closed *ClosedError
				require.ErrorAs(t, o.err, &closed)
				require.True(t, closed.Sent)
				require.Equal(t, wire.Retriable|wire.RefreshMetadata|wire.OutcomeUnknown, wire.Classify(o.err))
			}
			require.Equal(t, 10*time.Second, time.Since(began), "the oldest decides, to the tick")
			<-c.Done()
			err := c.Acquire(t.Context())
			require.ErrorIs(t, err, ErrTimeout)
			require.Equal(t, wire.Retriable|wire.RefreshMetadata|wire.DefinitelyRefused, wire.Classify(err))
			require.False(t, c.TryAcquire())
		})
}

func TestTimeouts(t *testing.T) {
	late := func(d time.Duration) func(rawserver.Request) rawserver.Reply {
		return func(r rawserver.Request) rawserver.Reply { return rawserver.Reply{Delay: d, Body: r.Body} }
	}
	for _, row := range []struct {
		name   string
		handle func(rawserver.Request) rawserver.Reply
		calls  []time.Duration // Timeout of each call, sent at once
		after  time.Duration   // when the connection times out; 0: it does not
	}{
		{"an answer just in time", late(29 * time.Second), []time.Duration{0}, 0},
		{"an answer too late for ReadTimeout", late(31 * time.Second), []time.Duration{0}, 30 * time.Second},
		{"a call may wait longer than ReadTimeout", late(50 * time.Second), []time.Duration{time.Minute}, 0},
		{"a call may be more impatient", late(5 * time.Second), []time.Duration{2 * time.Second}, 2 * time.Second},
		{"an impatient call behind a patient one", swallow, []time.Duration{time.Minute, 3 * time.Second}, 3 * time.Second},
		{"a patient call behind an impatient one", swallow, []time.Duration{3 * time.Second, time.Minute}, 3 * time.Second},
		{"an answer that stops half-way", func(r rawserver.Request) rawserver.Reply {
			whole := rawserver.Frame(r, r.Body)
			return rawserver.Reply{Raw: whole[:len(whole)-2]}
		}, []time.Duration{4 * time.Second}, 4 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, rawserver.Script{Handle: row.handle}, Options{MaxInFlight: 5}, func(t *testing.T, c *Conn) {
				began := time.Now()
				k := newCounter(len(row.calls))
				for i, timeout := range row.calls {
					call := k.call(i)
					call.Timeout = timeout
					send(t, c, call)
				}
				for range row.calls {
					o := <-k.got
					if row.after == 0 {
						require.NoError(t, o.err)
						continue
					}
					require.ErrorIs(t, o.err, ErrTimeout)
					require.Equal(t, row.after, time.Since(began))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, row.after == 0, c.Err() == nil, "idleness is not a timeout")
			})
		})
	}
}

// The time until an answer begins, and the time that the rest of it may take, have bounds of their own.
func TestRequestAndReadTimeouts(t *testing.T) {
	begun := func(r rawserver.Request) rawserver.Reply { // 5 s, then half an answer
		whole := rawserver.Frame(r, r.Body)
		return rawserver.Reply{Delay: 5 * time.Second, Raw: whole[:len(whole)-2]}
	}
	for _, row := range []struct {
		name   string
		handle func(rawserver.Request) rawserver.Reply
		o      Options
		after  time.Duration
		says   string
	}{
		{"no answer", swallow, Options{RequestTimeout: 20 * time.Second, ReadTimeout: 3 * time.Second}, 20 * time.Second, "no answer to Heartbeat within 20s"},
		{"half an answer", begun, Options{RequestTimeout: 20 * time.Second, ReadTimeout: 3 * time.Second}, 8 * time.Second, "an answer stopped half-way"},
		{"half an answer never outlasts the request's time", begun, Options{RequestTimeout: 6 * time.Second, ReadTimeout: time.Minute}, 6 * time.Second, "an answer stopped half-way"},
		{"without the one the other counts", swallow, Options{ReadTimeout: 3 * time.Second}, 3 * time.Second, "no answer to Heartbeat within 3s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, rawserver.Script{Handle: row.handle}, row.o, func(t *testing.T, c *Conn) {
				began := time.Now()
				k := newCounter(1)
				send(t, c, k.call(0))
				o := <-k.got
				require.ErrorIs(t, o.err, ErrTimeout)
				require.ErrorContains(t, o.err, row.says)
				require.Equal(t, row.after, time.Since(began))
			})
		})
	}
}

func TestWriteTimeout(t *testing.T) {
	stuck := func(net.Conn) { time.Sleep(time.Hour) } // reads nothing
	inBubble(t, rawserver.Script{Opened: stuck}, Options{WriteTimeout: 7 * time.Second},
		func(t *testing.T, c *Conn) {
			k := newCounter(1)
			require.NoError(t, c.Acquire(t.Context()))
			began := time.Now()
			err := c.Submit(k.call(0))
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "could not be written")
			require.Equal(t, 7*time.Second, time.Since(began))
			require.Zero(t, k.count(0), "Submit failed, so Done is not called")
		})
}

func TestDoGivesUpWithItsContextAndTheConnectionLivesOn(t *testing.T) {
	inBubble(t, rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
		return rawserver.Reply{Delay: 5 * time.Second, Body: kmsg.NewPtrHeartbeatResponse().AppendTo([]byte{})}
	}}, Options{MaxInFlight: 1}, func(t *testing.T, c *Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c.DoWith(ctx, kmsg.NewPtrHeartbeatRequest(), Need{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "gave up waiting for the answer to Heartbeat")
		require.True(t, wire.Classify(err).Has(wire.OutcomeUnknown))
		require.False(t, c.TryAcquire(), "its slot stays taken until the answer is there")
		time.Sleep(4 * time.Second)
		require.True(t, c.TryAcquire())
		require.NoError(t, c.Err())
	})
}

func TestPatience(t *testing.T) {
	c := &Conn{o: Options{ReadTimeout: 30 * time.Second}}
	join := kmsg.NewPtrJoinGroupRequest()
	join.RebalanceTimeoutMillis, join.SessionTimeoutMillis = 300_000, 10_000
	require.Equal(t, 305*time.Second, c.patience(join), "a JoinGroup may be held for the rebalance timeout")
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 60_000
	require.Equal(t, 65*time.Second, c.patience(create))
	create.TimeoutMillis = 1
	require.Equal(t, 30*time.Second, c.patience(create))
	require.Equal(t, 30*time.Second, c.patience(metadata()))
}

func TestTheTimerIsNotSetForEachRequest(t *testing.T) {
	inBubble(t, rawserver.Script{Handle: echo}, Options{MaxInFlight: 1}, func(t *testing.T, c *Conn) {
		k := newCounter(3)
		for i := range 3 {
			time.Sleep(time.Second)
			send(t, c, k.call(i))
			<-k.got
			c.mu.Lock()
			require.Equal(t, 30*time.Second, c.armed.Truncate(time.Second), "it stays armed for an early request")
			c.mu.Unlock()
		}
	})
}

func TestTheTimerIsSetAgainForLaterRequests(t *testing.T) {
	first := true
	handle := func(r rawserver.Request) rawserver.Reply {
		if first {
			first = false
			return rawserver.Reply{Body: r.Body}
		}
		return rawserver.Reply{}
	}
	inBubble(t, rawserver.Script{Handle: handle}, Options{ReadTimeout: 30 * time.Second}, func(t *testing.T, c *Conn) {
		k := newCounter(2)
		send(t, c, k.call(0)) // arms the timer for 30 s
		require.NoError(t, (<-k.got).err)
		time.Sleep(20 * time.Second)
		send(t, c, k.call(1)) // its deadline is at 50 s
		began := time.Now()
		require.ErrorIs(t, (<-k.got).err, ErrTimeout)
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}
