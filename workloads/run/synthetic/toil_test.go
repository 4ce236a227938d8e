package synthetic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// A rate that is missed is the generator's where its producers are at work all the time, and the cluster's
// where they are held up or not behind at all.
func TestWhoseTheMissedRateIs(t *testing.T) {
	const asked = 10_000
	for _, tt := range []struct {
		says      string
		producers int
		script    synthetic.Script
		own       bool
	}{
		{"one producer that can do 5 000/s", 1, synthetic.Script{Latency: ms, Toil: 200 * time.Microsecond}, true},
		{"four that can do 2 000/s each", 4, synthetic.Script{Latency: ms, Toil: 500 * time.Microsecond}, true},
		{"a server of 5 000/s behind a buffer that is full", 1, synthetic.Script{Latency: ms, Capacity: 5000, Buffer: 100}, false},
		{"the same behind four producers", 4, synthetic.Script{Latency: ms, Capacity: 5000, Buffer: 100}, false},
		{"a server of 5 000/s without a bound", 1, synthetic.Script{Latency: ms, Capacity: 5000}, false},
		{"a server of 2 500/s, and producers that could do 6 000/s", 1, synthetic.Script{Latency: ms, Capacity: 2500, Buffer: 100, Toil: 166 * time.Microsecond}, false},
		{"refusals", 1, synthetic.Script{Latency: ms, Refuse: 0.18}, false},
	} {
		d := definition(asked, 2*time.Second)
		d.Producers.Count, d.Producers.Run = tt.producers, 100
		d.Validity.MaxOwnShare = workloads.Default().Validity.MaxOwnShare
		out := measure(t, d, tt.script)
		said := strings.Join(out.Run.Verdict.Reasons, "\n")
		require.Contains(t, said, "rate not met", tt.says)
		require.Equal(t, tt.own, strings.Contains(said, "generator-bound: "), "%s: %s", tt.says, said)
		require.Equal(t, tt.own, out.Run.Verdict.GeneratorBound(), tt.says)
		t.Logf("%s: behind %s, at work %s of it", tt.says, time.Duration(out.Run.Generator.BehindNs), time.Duration(out.Run.Generator.BehindOwnNs))
	}
}

// Waiting for one of the engine's own messages to come back is no work of the generator's.
func TestWaitingForTheEnginesBoundIsNoWork(t *testing.T) {
	d := definition(10_000, 2*time.Second)
	d.Validity.MaxOwnShare = 0.5
	out, err := execute(t, run.Spec{Definition: d, MaxOpen: 16}, synthetic.Script{Latency: 10 * ms}, nil)
	require.NoError(t, err)
	require.Contains(t, out.Run.Verdict.Warnings[0], "messages were open at once")
	require.Greater(t, out.Run.Generator.BehindNs, int64(time.Second))
	require.Less(t, out.Run.Generator.BehindOwnNs, out.Run.Generator.BehindNs/10)
	require.False(t, out.Run.Verdict.GeneratorBound())
}
