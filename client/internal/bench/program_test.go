package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results/hist"
)

// modes are what our program can do. Each works off job.N messages and leaves in the job what
// the line is to say of it.
var modes map[string]func(context.Context, *job) error

func init() { // it refers to itself through parseSettings
	modes = map[string]func(context.Context, *job) error{
		"callback": produceCallback, "run": produceRuns, "channels": produceChannels, "batch": produceBatch, "sync": produceSync,
		"consume": consumeBatches, "consume-message": consumeMessages, "consume-bare": consumeBare, "consume-idle": consumeIdle,
		"rebalance": rebalances("cooperative-sticky", true), "rebalance-eager": rebalances("range", true),
		"rebalance-none": rebalances("cooperative-sticky", false),
		"idle":           idleProducers, "partitions": manyPartitions,
	}
}

// job is one run of the program.
type job struct {
	settings
	cfg    *client.Config
	values *values
	turns  turns

	done  int64           // messages with a good outcome
	h     *hist.Histogram // their response times; nil: none were taken
	asked atomic.Int64    // requests
	more  []string        // further key=value for the line
}

// runProgram is the whole program: flags in, one line out.
func runProgram(args []string, out io.Writer) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	j := &job{settings: s, values: newValues(s.Size)}
	if j.cfg, err = s.config(); err != nil {
		return err
	}
	j.cfg.Producer.OnRequest = func(client.RequestInfo) { j.asked.Add(1) }
	if s.Profile != "" {
		f, err := os.Create(s.Profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	start, cpu := time.Now(), cpuTime()
	if err := modes[s.Mode](context.Background(), j); err != nil {
		return fmt.Errorf("%s: %w", s.Mode, err)
	}
	_, err = fmt.Fprintln(out, j.line(time.Since(start), cpuTime()-cpu))
	return err
}

func (j *job) say(key string, value any) { j.more = append(j.more, fmt.Sprint(key, "=", value)) }

func (j *job) line(wall, cpu time.Duration) string {
	var b strings.Builder
	n := float64(j.done)
	fmt.Fprintf(&b, "%-10s %-8s acks=%s size=%d c=%s n=%d wall=%.3fs rate=%.0f/s cpu=%.3fs cpu/rec=%.1fns",
		j.Lib, j.Mode, j.Acks, j.Size, j.Codec, j.done, wall.Seconds(), n/wall.Seconds(), cpu.Seconds(), float64(cpu.Nanoseconds())/n)
	fmt.Fprintf(&b, " idem=%t inflight=%d batch=%d linger=%s", j.Idempotent, j.InFlight, j.Batch, j.cfg.Producer.Flush.Frequency)
	if r := j.asked.Load(); r > 0 {
		fmt.Fprintf(&b, " req=%d rec/req=%.1f", r, n/float64(r))
	}
	if j.h != nil {
		fmt.Fprintf(&b, " p50=%s p99=%s p99.9=%s", time.Duration(j.h.Quantile(0.5)), time.Duration(j.h.Quantile(0.99)), time.Duration(j.h.Quantile(0.999)))
	}
	for _, m := range j.more {
		b.WriteString(" " + m)
	}
	return b.String()
}

// cpuTime is user and system time of this process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// memory is what is live on the heap, and the stacks.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
