package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// A discarding broker gives back nothing of what it was sent: none of it arrives, and what is read
// there instead is someone else's, not this run's own gone bad.
func TestSyntheticMessagesAreForeign(t *testing.T) {
	c, err := broker.Start(broker.Options{Discard: true})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	d := load(200)
	d.Consumers.Count = 1
	warnings := ""
	// A consumer on a busy machine may not get to read anything in so short a run.
	for drain := 300 * time.Millisecond; warnings == "" && drain < time.Minute; drain *= 4 {
		d.Phases.Drain = drain
		out := bench{d: d}.execute(t, c.Bootstrap())
		require.EqualValues(t, 200, out.Run.Counts.Acked)
		require.EqualValues(t, 200, out.Run.Counts.Lost+out.Run.Counts.NotReceived)
		require.Zero(t, out.Run.Counts.Corrupted)
		require.Zero(t, out.Run.Counts.Received)
		warnings = strings.Join(out.Run.Verdict.Warnings, "\n")
	}
	require.Contains(t, warnings, "messages arrived that this run did not send")
}
