package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatch(t *testing.T) {
	const ms = int64(time.Millisecond)
	f := newFrame(int64(time.Second), true)
	f.start.Store(1000 * ms)
	w := newWatch(nil, f, 100*ms)
	w.saw(500*ms, 900*ms)
	require.Zero(t, w.longest, "a pause of the warm-up is no matter of the figures")
	w.saw(1000*ms, 1101*ms)
	require.Equal(t, 100*ms, w.longest)
	require.Empty(t, w.pauses, "at the limit")
	w.saw(2000*ms, 4001*ms)
	require.Equal(t, 2000*ms, w.longest)
	require.Len(t, w.pauses, 1)
	require.Equal(t, 1000*ms, w.pauses[0].AtNs)
	require.Equal(t, 2000*ms, w.pauses[0].DurationNs)
	w.saw(900*ms, 1200*ms)
	require.Len(t, w.pauses, 2, "one that spans the start is")
	for range 2 * maxPauseEvents {
		w.saw(2000*ms, 4000*ms)
	}
	require.Len(t, w.pauses, maxPauseEvents)
}
