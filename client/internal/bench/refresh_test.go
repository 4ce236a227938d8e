//go:build bench

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/kafka"
)

var (
	pairsFlag  = flag.Int("pairs", 8, "pairs of runs, with and without refreshes; fewer than 8 are for trying")
	lengthFlag = flag.Duration("length", 20*time.Second, "measured phase of one run")
	rateFlag   = flag.Float64("rate", 5000, "messages a second")
)

// refreshEvery is the interval whose effect is measured, refreshLimit what it may cost.
const (
	refreshEvery = time.Second
	refreshLimit = 1.10
)

// steady is one run at a steady rate.
type steady struct {
	P999    float64 `json:"p999Ns"`
	P50     float64 `json:"p50Ns"`
	Sockets int64   `json:"sockets"` // opened, over the whole run
	// Problems are why the run is not valid, or what to know of it: a busy machine, mostly.
	Problems []string `json:"problems,omitempty"`
}

type pair struct {
	With    steady `json:"refreshing"`
	Without steady `json:"without"`
}

type refreshReport struct {
	StartedAt time.Time    `json:"startedAt"`
	Host      results.Host `json:"host"`
	Rate      float64      `json:"messagesPerSecond"`
	LengthNs  int64        `json:"lengthNs"`
	EveryNs   int64        `json:"refreshEveryNs"`
	Pairs     []pair       `json:"pairs"`
	Ratio     *ratio       `json:"ratio"`
}

// TestRefresh measures on real Kafka what a refresh of metadata every second does to p99.9 of the
// response time. It fails when a run is no good or a refresh opened a socket; whether the limit
// was kept is what it reports.
func TestRefresh(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	require.Positive(t, *pairsFlag, "-pairs")
	bootstrap := os.Getenv(kafkaEnv)
	require.NotEmpty(t, bootstrap, "%s is not set: run this with make bench-refresh", kafkaEnv)
	r := refreshReport{
		StartedAt: time.Now().UTC(), Host: results.HostInfo(), Rate: *rateFlag, LengthNs: int64(*lengthFlag), EveryNs: int64(refreshEvery),
	}
	var logs []float64
	for i := range *pairsFlag {
		p, err := runPair(ctx, strings.Split(bootstrap, ","), i%2 == 1)
		require.NoError(t, err)
		fmt.Fprintf(os.Stderr, "pair %d: p99.9 %s with refreshes, %s without\n", i+1, nanoseconds.format(p.With.P999), nanoseconds.format(p.Without.P999))
		require.Equal(t, p.Without.Sockets, p.With.Sockets, "sockets opened in pair %d, with refreshes and without", i+1)
		logs = append(logs, math.Log(p.With.P999/p.Without.P999))
		r.Pairs = append(r.Pairs, p)
	}
	r.Ratio = ratioOf(logs)
	r.write(os.Stdout)
	if *outFlag != "" {
		require.NoError(t, save(*outFlag, &r))
	}
}

// runPair runs both, in turned order in every other pair.
func runPair(ctx context.Context, bootstrap []string, turned bool) (p pair, err error) {
	with := func() error { p.With, err = runSteady(ctx, bootstrap, refreshEvery); return err }
	without := func() error { p.Without, err = runSteady(ctx, bootstrap, 0); return err }
	if turned {
		with, without = without, with
	}
	if err := with(); err != nil {
		return p, err
	}
	return p, without()
}

func runSteady(ctx context.Context, bootstrap []string, refresh time.Duration) (steady, error) {
	d := workloads.Default()
	d.Name, d.Producers.Rate = "refresh", *rateFlag
	d.Phases.WarmUp, d.Phases.Duration = 3*time.Second, *lengthFlag
	cfg := client.NewConfig()
	cfg.Metadata.RefreshFrequency = refresh
	var sockets atomic.Int64
	cfg.Net.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		sockets.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	clock := run.NewClock()
	out, err := run.Execute(ctx, run.Spec{
		Definition: d, Clock: clock,
		Target: kafka.New(kafka.Options{Bootstrap: bootstrap, Config: *cfg, Definition: d, Clock: clock}),
	})
	if err != nil {
		return steady{}, err
	}
	if c := out.Run.Counts; c.Acked != c.Attempted || c.Acked == 0 {
		return steady{}, fmt.Errorf("%d of %d messages were acknowledged", c.Acked, c.Attempted)
	}
	response := out.Run.Series[results.SeriesResponse]
	if response.P999Ns <= 0 {
		return steady{}, errors.New("the run has no response times")
	}
	return steady{
		P999: float64(response.P999Ns), P50: float64(response.P50Ns), Sockets: sockets.Load(),
		Problems: slices.Concat(out.Run.Verdict.Reasons, out.Run.Verdict.Warnings),
	}, nil
}

func (r *refreshReport) write(to io.Writer) {
	fmt.Fprintf(to, "\nrefresh: p99.9 of the response time at %.0f messages/s on real Kafka, metadata refreshed every %s and never, %d pairs of %s\n",
		r.Rate, time.Duration(r.EveryNs), len(r.Pairs), time.Duration(r.LengthNs))
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  pair\tp99.9 refreshing\tp99.9 without\tratio\tp50 refreshing\tp50 without\tsockets")
	for i, p := range r.Pairs {
		fmt.Fprintf(w, "  %d\t%s\t%s\t%.3f\t%s\t%s\t%d, %d\n", i+1, nanoseconds.format(p.With.P999), nanoseconds.format(p.Without.P999),
			p.With.P999/p.Without.P999, nanoseconds.format(p.With.P50), nanoseconds.format(p.Without.P50), p.With.Sockets, p.Without.Sockets)
	}
	_ = w.Flush()
	for i, p := range r.Pairs {
		for _, problem := range slices.Concat(p.With.Problems, p.Without.Problems) {
			fmt.Fprintf(to, "  note: pair %d: %s\n", i+1, problem)
		}
	}
	verdict := "reached"
	if r.Ratio.Estimate > refreshLimit {
		verdict = "NOT reached"
	}
	fmt.Fprintf(to, "  ratio of p99.9 (Hodges–Lehmann): %s; asked: at most %.2f: %s\n", r.Ratio, refreshLimit, verdict)
}
