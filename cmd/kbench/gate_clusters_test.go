package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
)

// requireSides checks the results of a gate's two sides: as many runs on either, next to each other in
// time and on the cluster of that side alone. It returns how often A came first.
func requireSides(t *testing.T, dir string, first, second string, pairs int) (aFirst int) {
	t.Helper()
	a, b := loadResult(t, filepath.Join(dir, "a")), loadResult(t, filepath.Join(dir, "b"))
	require.Equal(t, []string{first}, a.Provenance.Cluster.Bootstrap)
	require.Equal(t, []string{second}, b.Provenance.Cluster.Bootstrap)
	require.GreaterOrEqual(t, len(a.Points[0].Runs), pairs)
	require.GreaterOrEqual(t, len(b.Points[0].Runs), pairs)
	orders := map[int]int{}
	for _, run := range a.Points[0].Runs {
		orders[run.Repeat] = run.Order
	}
	for _, run := range b.Points[0].Runs {
		order, both := orders[run.Repeat]
		if !both { // the other run of a lost pair
			continue
		}
		require.Contains(t, []int{order - 1, order + 1}, run.Order, "next to each other")
		if order < run.Order {
			aFirst++
		}
	}
	return aFirst
}

// Two brokers that stand at the same time, one slower than the other by the same setting that a gate
// of one cluster would find.
func TestGateOfTwoClusters(t *testing.T) {
	t.Parallel()
	_, first := startBroker(t)
	_, second := startBroker(t, "--nodes", "2")
	p := start(t, t.TempDir(), nil, gateOf("--a-brokers", first, "--b-brokers", second, "--b", "producer.flush.frequency=50ms")...)
	e := p.wait()
	e.requireCode(t, codeThreshold)
	e.requireWords(t, "gate of quick on two clusters: 8 to 20 pairs")
	require.Contains(t, e.out, "FAIL quick: A on "+first)
	require.Contains(t, e.out, "the sides differ in brokers: 1, then 2", "said before any figure")
	require.Contains(t, e.out, "the sides differ in producer.flush.frequency: ")
	require.Contains(t, e.out, "embedded broker: figures say nothing about Apache Kafka")
	require.NotContains(t, e.out, "the same cluster")
	d := decisionIn(t, p.dir)
	require.Equal(t, gate.Fail, d.Verdict)
	require.Equal(t, "B producer.flush.frequency=50ms on "+second, d.New)
	require.Equal(t, gate.Fail, d.Metrics[1].Verdict, d.Metrics[1].Name)
	a, b := loadResult(t, filepath.Join(p.dir, "g", "a")), loadResult(t, filepath.Join(p.dir, "g", "b"))
	require.Len(t, a.Provenance.Cluster.Brokers, 1)
	require.Len(t, b.Provenance.Cluster.Brokers, 2)
	require.NotEqual(t, a.Points[0].Runs[0].Topics[0].Name, b.Points[0].Runs[0].Topics[0].Name)
}

// A name that stands for the same cluster twice would make any two builds look alike.
func TestGateOfOneClusterTwice(t *testing.T) {
	t.Parallel()
	_, address := startBroker(t)
	p := start(t, t.TempDir(), nil, gateOf("--a-brokers", address, "--b-brokers", address)...)
	p.wait()
	d := decisionIn(t, p.dir)
	require.Contains(t, d.Notes, "both sides are the same cluster: its brokers call themselves "+address+" on either")
	require.Empty(t, d.Differs)
	aFirst := requireSides(t, filepath.Join(p.dir, "g"), address, address, d.Pairs)
	require.Positive(t, aFirst, "the order is random")
	require.Less(t, aFirst, d.Pairs)
}

// One of the clusters goes away: the gate ends with what it has and decides nothing.
func TestGateOfAClusterThatDies(t *testing.T) {
	t.Parallel()
	_, first := startBroker(t)
	broker, second := startBroker(t)
	p := start(t, t.TempDir(), nil, gateOf("--a-brokers", first, "--b-brokers", second, "--set", "phases.drain=1s")...)
	p.says("[5/40] ")
	require.NoError(t, broker.cmd.Process.Kill())
	e := p.wait()
	e.requireCode(t, codeError)
	e.requireWords(t, "side B", second)
	require.Equal(t, gate.Inconclusive, decisionIn(t, p.dir).Verdict)
}

func TestGateSecondInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, gateOf("--duration", "10m")...)
	p.says("measure")
	broker := p.broker()
	require.NoError(t, syscall.Kill(broker, syscall.SIGSTOP), "so that the first interrupt has to wait")
	p.signal(syscall.SIGINT)
	p.says("interrupted: waiting shortly for what is in flight; Ctrl-C again stops at once")
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	requireGone(t, broker)
	e.requireWords(t, "kbench: stopped at once")
	require.NoDirExists(t, filepath.Join(p.dir, "g"), "nothing was finished")
}

// On clusters of the user's, topics may stay when kbench is not let clear up.
func TestGateSecondInterruptTellsOfTopics(t *testing.T) {
	t.Parallel()
	one, first := startBroker(t)
	two, second := startBroker(t)
	p := start(t, t.TempDir(), nil, gateOf("--duration", "10m", "--a-brokers", first, "--b-brokers", second)...)
	p.says("measure")
	for _, broker := range []*process{one, two} {
		require.NoError(t, broker.cmd.Process.Signal(syscall.SIGSTOP))
	}
	p.signal(syscall.SIGINT)
	p.says("Ctrl-C again")
	p.signal(syscall.SIGINT)
	e := p.wait()
	e.requireCode(t, codeInterrupted)
	e.requireWords(t, "may be left on "+first, "may be left on "+second)
}
