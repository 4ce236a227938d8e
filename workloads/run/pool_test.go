package run

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func soak() bool { return os.Getenv("KBENCH_SOAK") == "1" }

func TestPoolGrowsToItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(4, 10, plain)
		var taken []*Message
		for m := p.take(); m != nil; m = p.take() {
			taken = append(taken, m)
		}
		require.Len(t, taken, 10)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, p.wait(ctx), "none comes back")
		rec := newTestRecorder(true)
		go func() { // ends by itself; the wait below sees what it does
			time.Sleep(time.Second)
			p.decided(taken[3:6], 1500, rec)
		}()
		require.True(t, p.wait(t.Context()))
		for range 3 {
			require.NotNil(t, p.take())
		}
		require.Nil(t, p.take())
		synctest.Wait()
	})
}

// A message is decided or unknown, never both.
func TestPoolCut(t *testing.T) {
	p := newPool(3, 3, plain)
	batch := []*Message{p.take(), p.take(), p.take()}
	for _, m := range batch {
		m.open, m.Due = true, 1000
	}
	rec := newTestRecorder(true)
	p.decided(batch[:1], 1500, rec)
	var open []*Message
	p.cut(func(m *Message) { open = append(open, m) })
	require.Equal(t, batch[1:], open)
	p.decided(batch[1:], 1600, rec)
	require.EqualValues(t, 1, rec.decided, "what comes too late is not counted twice")
}
