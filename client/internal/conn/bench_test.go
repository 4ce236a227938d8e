package conn

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/rawserver"
)

// answerAll answers every request with 32 bytes, without allocating.
func answerAll(c net.Conn) {
	in, out := make([]byte, 64<<10), make([]byte, 4+4+1+32)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	for {
		if _, err := io.ReadFull(c, in[:12]); err != nil {
			return
		}
		copy(out[4:8], in[8:12])
		if _, err := io.ReadFull(c, in[:binary.BigEndian.Uint32(in)-8]); err != nil {
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// benchmarkSubmit: body bytes a request, so many of them in flight.
func benchmarkSubmit(b *testing.B, inFlight, body int) {
	s := start(b, rawserver.Script{Opened: answerAll})
	c := dial(b, s, Options{MaxInFlight: inFlight, ClientID: "bench"})
	calls := make([]Call, inFlight)
	free := make(chan *Call, inFlight)
	for i := range calls {
		call := &calls[i]
		*call = Call{Key: 0, Version: 9, Body: net.Buffers{make([]byte, 64), make([]byte, body)}}
		call.Done = func(_ []byte, _ Times, err error) {
			if err != nil {
				b.Error(err)
			}
			free <- call
		}
		free <- call
	}
	b.SetBytes(int64(body))
	b.ReportAllocs()
	for b.Loop() {
		call := <-free
		if err := c.Acquire(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := c.Submit(call); err != nil {
			b.Fatal(err)
		}
	}
	for range calls {
		<-free
	}
}

func BenchmarkSubmit(b *testing.B) {
	b.Run("1 in flight, 1 KiB", func(b *testing.B) { benchmarkSubmit(b, 1, 1<<10) })
	b.Run("5 in flight, 1 KiB", func(b *testing.B) { benchmarkSubmit(b, 5, 1<<10) })
	b.Run("5 in flight, 32 KiB", func(b *testing.B) { benchmarkSubmit(b, 5, 32<<10) })
}

// A hot call must not allocate in steady state: neither its writing nor its answer.
func TestHotCallsDoNotAllocate(t *testing.T) {
	s := start(t, rawserver.Script{Opened: answerAll})
	c := dial(t, s, Options{})
	done := make(chan error, 1)
	call := &Call{Key: 0, Version: 9, Body: net.Buffers{make([]byte, 100), make([]byte, 1000)},
		Done: func(_ []byte, _ Times, err error) { done <- err }}
	ctx := t.Context()
	round := func() {
		if c.Acquire(ctx) != nil || c.Submit(call) != nil || <-done != nil {
			t.Error("failed")
		}
	}
	for range 100 {
		round()
	}
	require.Less(t, testing.AllocsPerRun(1000, round), 0.1)
}
