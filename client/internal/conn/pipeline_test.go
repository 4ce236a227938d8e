package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/rawserver"
)

func TestAnswersReachTheirCallsInOrder(t *testing.T) {
	for _, inFlight := range []int{1, 5, 100} {
		t.Run(fmt.Sprintf("MaxInFlight %d", inFlight), func(t *testing.T) {
			s := start(t, rawserver.Script{Handle: echo})
			c := dial(t, s, Options{MaxInFlight: inFlight, ClientID: "test"})
			const n = 500
			k := newCounter(n)
			for i := range n {
				send(t, c, k.call(i))
				require.LessOrEqual(t, c.InFlight(), inFlight)
			}
			for i := range n {
				o := wait(t, k.got)
				require.NoError(t, o.err)
				require.Equal(t, uint64(i), binary.BigEndian.Uint64(o.body))
				require.False(t, o.t.Read.Before(o.t.Written))
				require.Equal(t, 1, k.count(i))
			}
			require.WithinDuration(t, time.Now(), c.LastUsed(), 10*time.Second)
		})
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	s := start(t, rawserver.Script{Handle: echo})
	c := dial(t, s, Options{MaxInFlight: 5})
	k := newCounter(400)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				send(t, c, k.call(g*50+i))
				if i%10 == 0 {
					_, err := c.Do(t.Context(), metadata())
					require.Error(t, err, "echoed metadata cannot be decoded, and the connection lives on")
				}
			}
		})
	}
	wg.Wait()
	for range 400 {
		require.NoError(t, wait(t, k.got).err)
	}
	for id := range 400 {
		require.Equal(t, 1, k.count(id))
	}
	require.NoError(t, c.Err())
}

// gate answers when told to.
func gate() (handle func(rawserver.Request) rawserver.Reply, open func(), arrived chan int32) {
	ch := make(chan struct{})
	arrived = make(chan int32, 100)
	return func(r rawserver.Request) rawserver.Reply {
		arrived <- r.Corr
		return rawserver.Reply{Wait: ch, Body: r.Body}
	}, sync.OnceFunc(func() { close(ch) }), arrived
}

func TestSlots(t *testing.T) {
	handle, open, _ := gate()
	s := start(t, rawserver.Script{Handle: handle})
	c := dial(t, s, Options{MaxInFlight: 2})
	k := newCounter(3)
	send(t, c, k.call(0))
	require.True(t, c.TryAcquire())
	require.False(t, c.TryAcquire(), "one in flight, one held: no slot is left")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "a free request slot")
	c.Release()
	require.True(t, c.TryAcquire(), "a released slot is free again")
	require.NoError(t, c.Submit(k.call(1)))
	require.Equal(t, 2, c.InFlight())
	open()
	require.NoError(t, c.Acquire(ctxFor(t, 10*time.Second)), "an answer frees a slot")
	for range 2 {
		require.NoError(t, wait(t, k.got).err)
	}
	require.Zero(t, c.InFlight())
	c.Release()
	c.Release()
	c.Release() // one too many must neither block nor make a slot
	require.True(t, c.TryAcquire())
	require.True(t, c.TryAcquire())
	require.False(t, c.TryAcquire())
}

func TestNoResponseUsesNoSlot(t *testing.T) { // P27
	handle, open, arrived := gate()
	s := start(t, rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply {
		if r.Key == 0 {
			return rawserver.Reply{}
		}
		return handle(r)
	}})
	c := dial(t, s, Options{MaxInFlight: 1})
	k := newCounter(1)
	send(t, c, k.call(0))
	wait(t, arrived)
	for range 20 {
		done := false
		call := &Call{Key: 0, Version: 9, Body: net.Buffers{[]byte("x")}, NoResponse: true,
			Done: func(body []byte, ts Times, err error) {
				done = true
				require.NoError(t, err)
				require.Nil(t, body)
				require.False(t, ts.Written.IsZero())
				require.True(t, ts.Read.IsZero())
			}}
		require.NoError(t, c.Submit(call))
		require.True(t, done, "Done is called by Submit")
	}
	require.Equal(t, 1, c.InFlight())
	open()
	require.NoError(t, wait(t, k.got).err)

	c.Close(nil)
	err := c.Submit(&Call{NoResponse: true, Done: func([]byte, Times, error) { t.Error("called") }})
	require.ErrorIs(t, err, ErrClosed)
}

func TestBuffer(t *testing.T) {
	s := start(t, rawserver.Script{Handle: echo})
	c := dial(t, s, Options{})
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB, grows the own buffer in steps
	for _, row := range []struct {
		name string
		own  func(n int) []byte
		mine bool
	}{
		{"none: the connection's own", nil, false},
		{"the caller's", func(n int) []byte { return make([]byte, n+10) }, true},
		{"too short a buffer is not used", func(n int) []byte { return make([]byte, n-1) }, false},
	} {
		for _, body := range [][]byte{large, []byte("a"), large[:1<<20], {}} {
			t.Run(fmt.Sprintf("%s, %d bytes", row.name, len(body)), func(t *testing.T) {
				if len(body) == 0 && row.name[0] == 't' && !row.mine {
					return // there is no buffer shorter than nothing
				}
				var given []byte
				got := make(chan outcome, 1)
				call := &Call{Key: keyHeartbeat, Version: 4, Body: net.Buffers{body},
					Done: func(b []byte, _ Times, err error) {
						if row.mine && len(b) > 0 && &b[0] != &given[0] {
							t.Error("not the caller's memory")
						}
						got <- outcome{body: bytes.Clone(b), err: err}
					}}
				if row.own != nil {
					call.Buffer = func(n int) []byte { given = row.own(n); return given }
				}
				send(t, c, call)
				o := wait(t, got)
				require.NoError(t, o.err)
				require.True(t, bytes.Equal(body, o.body))
			})
		}
	}
}

// The caller's list of buffers must come out of Submit as it went in: a retry sends it again.
func TestBodyIsNotChanged(t *testing.T) {
	s := start(t, rawserver.Script{Handle: echo})
	c := dial(t, s, Options{})
	k := newCounter(2)
	call := k.call(7)
	for range 2 {
		send(t, c, call)
		require.Len(t, wait(t, k.got).body, 8)
		require.Len(t, call.Body, 2)
		require.Len(t, call.Body[0], 3)
	}
}

func TestThrottleHoldsBackTheNextWrite(t *testing.T) { // P28
	inBubble(t, rawserver.Script{Handle: echo}, Options{MaxInFlight: 5}, func(t *testing.T, c *Conn) {
		began := time.Now()
		c.Throttle(2 * time.Second)
		c.Throttle(time.Second) // a shorter one does not shorten it
		c.Throttle(-time.Second)
		k := newCounter(2)
		send(t, c, k.call(0))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.NoError(t, (<-k.got).err)
		send(t, c, k.call(1))
		require.Equal(t, 2*time.Second, time.Since(began), "and no later one")
		require.NoError(t, (<-k.got).err)

		c.Throttle(1 << 62)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, metadata())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "throttling")
		require.NoError(t, c.Acquire(t.Context()))
		began = time.Now()
		require.NoError(t, c.Submit(k.call(2)))
		require.LessOrEqual(t, time.Since(began), MaxThrottle, "a broker cannot stop us for ever")
		require.NoError(t, (<-k.got).err)
	})
}

func TestQueueKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []int32
		next := int32(0)
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op <= 1:
				q.push(entry{corr: next})
				model = append(model, next)
				next++
			case len(model) == 0:
			case op == 2:
				require.Equal(t, model[0], q.pop().corr)
				model = model[1:]
			default:
				require.Equal(t, model[len(model)-1], q.popLast().corr)
				model = model[:len(model)-1]
			}
			require.Equal(t, len(model), q.len())
			for i, corr := range model {
				require.Equal(t, corr, q.at(i).corr)
			}
		}
	})
}

func TestPackerWritesAllBytesInOrder(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	p := &packer{w: client}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var bufs [][]byte
		var want []byte
		for range rng.IntN(6) {
			b := make([]byte, rng.IntN(3*packBytes/2)>>rng.IntN(12))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			bufs = append(bufs, b)
			want = append(want, b...)
		}
		got := make(chan []byte, 1)
		go func() { // ends when it has read what this round writes; the round waits for it
			b := make([]byte, len(want))
			_, _ = readFull(server, b)
			got <- b
		}()
		n, err := p.write(bufs, len(want))
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), n)
		require.True(t, bytes.Equal(want, <-got))
	}
}

func readFull(c net.Conn, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = c.Read(b[n:])
		n += m
	}
	return n, err
}
