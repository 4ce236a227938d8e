package conn

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/client/internal/rawserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyHeartbeat is the request that tests of the hot path send; its bodies are not looked at.
const keyHeartbeat = 12

func start(t testing.TB, script rawserver.Script) *rawserver.Server {
	t.Helper()
	s, err := rawserver.Start(script)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func dial(t testing.TB, s *rawserver.Server, o Options) *Conn {
	t.Helper()
	c, err := Open(t.Context(), s.Addr(), o)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(nil) })
	return c
}

// echo answers every request with its own body.
func echo(r rawserver.Request) rawserver.Reply {
	return rawserver.Reply{Body: append([]byte{}, r.Body...)}
}

// outcome is what a Done got.
type outcome struct {
	body []byte
	t    Times
	err  error
}

// counter hands out Dones and counts how often each is called.
type counter struct {
	mu    sync.Mutex
	calls map[int]int
	order []int
	got   chan outcome
}

func newCounter(n int) *counter {
	return &counter{calls: map[int]int{}, got: make(chan outcome, 2*n)}
}

func (k *counter) call(id int) *Call {
	var body [8]byte
	binary.BigEndian.PutUint64(body[:], uint64(id))
	return &Call{
		Key: keyHeartbeat, Version: 4, Body: net.Buffers{body[:3], body[3:]},
		Done: func(b []byte, t Times, err error) {
			k.mu.Lock()
			k.calls[id]++
			k.order = append(k.order, id)
			k.mu.Unlock()
			k.got <- outcome{append([]byte(nil), b...), t, err}
		},
	}
}

func (k *counter) count(id int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls[id]
}

// send acquires and submits, and fails the test when that fails.
func send(t testing.TB, c *Conn, call *Call) {
	t.Helper()
	require.NoError(t, c.Acquire(t.Context()))
	require.NoError(t, c.Submit(call))
}

// wait takes from a channel, for 10 s at most.
func wait[T any](t testing.TB, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "nothing came in 10 s")
	}
	return v
}

func metadata() *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	return req
}

func ctxFor(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
