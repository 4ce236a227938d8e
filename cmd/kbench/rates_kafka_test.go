//go:build kafka

package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// The flags of `make gate-rates`. By themselves they make one short gate that no machine gets wrong.
var (
	ratesGates    = flag.Int("rates.gates", 1, "gates of each set")
	ratesSets     = flag.String("rates.sets", "A/B", "which sets: A/A, A/B or both, with a comma")
	ratesLength   = flag.String("rates.length", "200ms", "measured phase of a run")
	ratesWarmUp   = flag.String("rates.warmup", "0s", "warm-up of a run")
	ratesSlower   = flag.Float64("rates.slower", 20, "how much slower B is, as a share of p50: 0.1")
	ratesLoosened = flag.String("rates.loosen", strings.Join(loosest, ","), "limits of validity, KEY=VALUE with commas, that are not the default ones")
	ratesOut      = flag.String("rates.out", "", "folder for the summary")
	ratesCommand  = flag.String("rates.command", "go test -tags kafka ./cmd/kbench -run KafkaGateRates", "what made it, for the summary")
)

var loosest = []string{"validity.maxStolenShare=1", "validity.maxPause=1h", "validity.maxLateness=1h", "validity.maxCpuShare=1", "validity.minRateShare=0"}

// ratesDelay is what the proxy adds to a request on side A of A/B, so that p50 is far above what timers
// are off by. ratesP50 is what p50 comes to then, with the broker and the wait for a free slot of the connection, where
// nothing else keeps the machine busy; what it came to stands in the summary.
const (
	ratesDelay = 20 * time.Millisecond
	ratesP50   = 22 * time.Millisecond
)

// rates is a measurement of error rates under way.
type rates struct {
	t        *testing.T
	cluster  *kafkatest.Cluster
	dir      string
	settings []string // of every run
	summary  *ratesSummary
}

// How often the gate errs on real Kafka: A/A, gates of the same setting, and A/B, with requests of B
// delayed by a share of p50. Both sides of A/B go through the same kind of proxy in kbench's process.
func TestKafkaGateRates(t *testing.T) {
	r := newRates(t)
	for _, name := range strings.Split(*ratesSets, ",") {
		require.Contains(t, []string{"A/A", "A/B"}, name)
		set := &ratesSet{Name: name, About: "the same setting"}
		set.expected(name == "A/B", *ratesGates)
		if name == "A/B" {
			r.slow(set)
		}
		r.summary.Sets = append(r.summary.Sets, set)
	}
	for i := range *ratesGates { // in turns, so that all sets see the same machine
		for _, set := range r.summary.Sets {
			r.gate(set, i)
		}
	}
	r.summary.TookNs = int64(time.Since(r.summary.StartedAt))
	if *ratesOut != "" {
		require.NoError(t, r.summary.write(*ratesOut))
	}
	require.NoError(t, r.summary.markdown(t.Output()))
	for _, set := range r.summary.Sets {
		require.True(t, set.Met, "%s: asked for %s, got %v", set.Name, set.asked(), set.Verdicts)
	}
}

func newRates(t *testing.T) *rates {
	text, err := os.ReadFile("testdata/rates.yaml")
	require.NoError(t, err)
	workload, err := filepath.Abs("testdata/rates.yaml")
	require.NoError(t, err)
	r := &rates{t: t, cluster: kafkatest.Shared(t, 1), dir: t.TempDir()}
	own := []string{"phases.duration=" + *ratesLength, "phases.warmUp=" + *ratesWarmUp, "phases.interval=100ms"}
	r.summary = &ratesSummary{
		Command: *ratesCommand, StartedAt: time.Now(), Kbench: version(), Host: results.HostInfo(),
		Workload: string(text), Settings: own, Loosened: []string{},
	}
	if *ratesLoosened != "" {
		r.summary.Loosened = strings.Split(*ratesLoosened, ",")
	}
	r.settings = []string{workload, "-b", strings.Join(r.cluster.Bootstrap, ",")}
	for _, s := range append(own, r.summary.Loosened...) {
		r.settings = append(r.settings, "--set", s)
	}
	return r
}

// delayed is the setting of a side whose requests the proxy delays all the time.
func delayed(by time.Duration) string {
	return fmt.Sprintf("faults=[at=0s kind=delay for=1h delay=%s]", by)
}

// slow delays the requests of B by a share of p50 more than those of A.
func (r *rates) slow(set *ratesSet) {
	more := time.Duration(math.Round(float64(ratesP50)**ratesSlower/1e4) * 1e4)
	set.A, set.B = delayed(ratesDelay), delayed(ratesDelay+more)
	set.InjectedNs, set.Share = int64(more), *ratesSlower
	set.About = fmt.Sprintf("requests of B delayed by %s more, %.0f %% of p50", more, 100**ratesSlower)
}

// gate runs one.
func (r *rates) gate(set *ratesSet, number int) {
	dir := filepath.Join(r.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(set.Name, "/", ""), number))
	sides := []string{"--set", fmt.Sprintf("seed=%d", number+1)}
	if set.A != "" {
		sides = append(sides, "--a", set.A, "--b", set.B)
	}
	p := start(r.t, r.dir, nil, args("gate", "--run", r.settings, sides, "--out", dir, "-q")...)
	<-p.done // a gate takes as long as it takes: bounded by go test -timeout
	code := p.cmd.ProcessState.ExitCode()
	require.Contains(r.t, []int{codeDone, codeThreshold, codeInconclusive, codeInvalid}, code, p.err.String())
	d := decisionOf(r.t, dir)
	require.Equal(r.t, gateCode(d.Verdict), code)
	a := loadResult(r.t, filepath.Join(dir, "a"))
	set.add(d, time.Since(p.started), a, loadResult(r.t, filepath.Join(dir, "b")))
	r.summary.Kafka = a.Provenance.Cluster.Version
	r.t.Logf("%s, gate %d of %d: %s after %d pairs, %s", set.Name, number+1, *ratesGates, d.Verdict, d.Pairs, time.Since(p.started).Round(100*time.Millisecond))
	require.NoError(r.t, os.RemoveAll(dir))
}
