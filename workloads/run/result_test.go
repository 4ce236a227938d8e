package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A backlog of the warm-up that is worked off in the phase is not the phase's throughput.
func TestRateIsOfThePhasesOwnMessages(t *testing.T) {
	e := &engine{frame: newFrame(int64(time.Second), false)}
	r := newRecorder(e.frame)
	r.ackedInPhase, r.phaseBytes = 1500, 150_000
	e.recorders = []*recorder{r}
	var total cell
	total.acked, total.ackedBytes = 1000, 100_000
	got := e.rates(0, int64(time.Second), &total, 0)
	require.EqualValues(t, 1000, got.MessagesPerSecond)
	require.EqualValues(t, 100_000, got.BytesPerSecond)

	r.ackedInPhase, r.phaseBytes = 800, 80_000
	got = e.rates(0, int64(time.Second), &total, 0)
	require.EqualValues(t, 800, got.MessagesPerSecond, "what came after the phase is not in its rate")
}
