package conn

import (
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/rawserver"
)

// ledger is an Observer that adds up.
type ledger struct {
	mu                           sync.Mutex
	sent, answered, lost, silent int
	awaited                      int
	sentBytes, answeredBytes     int
	took                         []time.Duration
	throttled                    time.Duration
}

func (l *ledger) Sent(key int16, size int, awaited bool) {
	if key != keyHeartbeat {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	l.sentBytes += size
	if awaited {
		l.awaited++
	} else {
		l.silent++
	}
}

func (l *ledger) Answered(key int16, size int, took time.Duration) {
	if key != keyHeartbeat {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered++
	l.answeredBytes += size
	l.took = append(l.took, took)
}

func (l *ledger) Lost(key int16) {
	if key != keyHeartbeat {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
}

func (l *ledger) Throttled(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.throttled += d
}

func TestAnObserverSeesEveryRequestOnce(t *testing.T) {
	var l ledger
	body := make([]byte, 8) // of the request and of its answer
	handle := func(r rawserver.Request) rawserver.Reply {
		if r.Body[7] >= 3 {
			return rawserver.Reply{}
		}
		return rawserver.Reply{Delay: time.Second, Body: body}
	}
	inBubble(t, rawserver.Script{Handle: handle}, Options{MaxInFlight: 5, Observer: &l, ClientID: "ob"}, func(t *testing.T, c *Conn) {
		k := newCounter(10)
		for i := range 3 {
			send(t, c, k.call(i))
			<-k.got
		}
		quiet := k.call(3)
		quiet.NoResponse = true
		require.NoError(t, c.Submit(quiet))
		<-k.got
		c.Throttle(3 * time.Millisecond)
		c.Throttle(0)
		time.Sleep(10 * time.Second)
		send(t, c, k.call(4))
		send(t, c, k.call(5))
		c.Close(nil)
		<-k.got
		<-k.got
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Equal(t, 6, l.sent)
		require.Equal(t, 1, l.silent)
		require.Equal(t, 3, l.answered)
		require.Equal(t, 2, l.lost)
		require.Equal(t, l.awaited, l.answered+l.lost)
		require.Equal(t, []time.Duration{time.Second, time.Second, time.Second}, l.took)
		require.Equal(t, 3*time.Millisecond, l.throttled)
		// Length, key, version, correlation id, client id, tags, body; length, correlation id, tags, body.
		require.Equal(t, 6*(4+2+2+4+2+len("ob")+1+8), l.sentBytes)
		require.Equal(t, 3*(4+4+1+8), l.answeredBytes)
	})
}

func TestAnObserverSeesWhatCouldNotBeWritten(t *testing.T) {
	var l ledger
	stuck := func(net.Conn) { time.Sleep(time.Hour) } // reads nothing
	inBubble(t, rawserver.Script{Opened: stuck}, Options{Observer: &l}, func(t *testing.T, c *Conn) {
		require.NoError(t, c.Acquire(t.Context()))
		require.Error(t, c.Submit(newCounter(1).call(0)))
		require.Equal(t, []int{1, 0, 1}, []int{l.awaited, l.answered, l.lost})
	})
}

// A connection that is not needed any more ends when what is in flight has been answered.
func TestRetire(t *testing.T) {
	cause := errors.New("the node has moved")
	slow := func(r rawserver.Request) rawserver.Reply { return rawserver.Reply{Delay: time.Second, Body: r.Body} }
	var together []byte
	third := func(r rawserver.Request) rawserver.Reply { // answers three at once
		together = append(together, rawserver.Frame(r, r.Body)...)
		if len(together) < 3*len(rawserver.Frame(r, r.Body)) {
			return rawserver.Reply{}
		}
		return rawserver.Reply{Delay: time.Second, Raw: together}
	}
	for _, row := range []struct {
		name     string
		inFlight int
		handle   func(rawserver.Request) rawserver.Reply
		ends     time.Duration
		fails    bool
	}{
		{"nothing in flight", 0, slow, 0, false},
		{"one request", 1, slow, time.Second, false},
		{"several", 3, third, time.Second, false},
		{"an answer that never comes", 1, swallow, 30 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, rawserver.Script{Handle: row.handle}, Options{MaxInFlight: 5}, func(t *testing.T, c *Conn) {
				k := newCounter(5)
				for i := range row.inFlight {
					send(t, c, k.call(i))
				}
				began := time.Now()
				require.NoError(t, c.Acquire(t.Context()))
				c.Retire(cause)
				c.Retire(errors.New("only the first counts"))
				late := c.Submit(k.call(4))
				var closed *ClosedError
				require.ErrorAs(t, late, &closed)
				require.ErrorIs(t, late, cause)
				require.False(t, closed.Sent, "what comes later is refused")
				for range row.inFlight {
					o := <-k.got
					require.Equal(t, row.fails, o.err != nil)
				}
				<-c.Done()
				require.Equal(t, row.ends, time.Since(began))
				if !row.fails {
					require.ErrorIs(t, c.Err(), cause)
				}
				require.Zero(t, c.InFlight())
			})
		})
	}
}
