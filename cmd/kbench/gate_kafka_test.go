//go:build kafka

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// Kafka 3.9 beside Kafka 4.4, in the shortest runs there are: what is looked at is that both sides
// run where they should and that the verdict says on what it rests. B lingers for 500 ms
// beside, which no machine hides.
func TestKafkaGateOfTwoReleases(t *testing.T) {
	releases := kafkatest.Releases(t)
	newest, old := releases[0], releases[1]
	first, second := strings.Join(old.Bootstrap, ","), strings.Join(newest.Bootstrap, ",")
	p := start(t, t.TempDir(), nil, gateOf("--a-brokers", first, "--b-brokers", second, "--rate", "100", "--duration", "500ms",
		"--b", "producer.flush.frequency=300ms", "--set", "phases.drain=30s", "--set", "validity.minRateShare=0")...)
	e := p.wait()
	d := decisionIn(t, p.dir)
	require.Equal(t, gate.Fail, d.Verdict, "%s", e.out)
	e.requireCode(t, codeThreshold)
	require.Contains(t, e.out, "A on "+first)
	require.Contains(t, e.out, "the sides differ in Kafka version: 3.9")
	require.Contains(t, e.out, "then 4.")
	require.NotContains(t, e.out, "embedded")
	require.GreaterOrEqual(t, d.Pairs, 8)
	requireSides(t, filepath.Join(p.dir, "g"), first, second, d.Pairs)
}
