package perftool

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// Consumed prints as kafka-consumer-perf-test does. The time ends with the last record, where Kafka's
// goes on through the wait for a next one that does not come.
type Consumed struct {
	Every    time.Duration // between two lines, with Detailed
	Detailed bool          // a line every so often, in place of one of everything
	Hide     bool          // no line of column names
	Out      io.Writer
	Clock    run.Clock

	mu      sync.Mutex
	opened  int64 // when the group was asked for; 0 before
	settled bool  // every partition has its reader
	last    int64 // record
	read    reading
	told    reading // as the last line had it
	toldAt  int64
}

// reading is what was read until some time.
type reading struct{ records, bytes, joining int64 }

func (r reading) minus(o reading) reading {
	return reading{r.records - o.records, r.bytes - o.bytes, r.joining - o.joining}
}

// Watch is target with the printer beside it.
func (c *Consumed) Watch(target run.Target) run.Target { return consumedTarget{beside{target}, c} }

type consumedTarget struct {
	beside
	c *Consumed
}

// OpenConsumer has arrivals pass by the printer.
func (t consumedTarget) OpenConsumer(ctx context.Context, who run.Member, in run.Arrivals) (run.Consumer, error) {
	t.c.mu.Lock()
	if t.c.opened == 0 {
		t.c.opened = t.c.Clock.Now()
		t.c.toldAt = t.c.opened
	}
	t.c.mu.Unlock()
	return t.Target.OpenConsumer(ctx, who, consumedArrivals{in, t.c})
}

// Settle notes how long joining took.
func (t consumedTarget) Settle(ctx context.Context) error {
	err := t.beside.Settle(ctx)
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled, c.read.joining = true, c.Clock.Now()-c.opened
	return err
}

type consumedArrivals struct {
	run.Arrivals
	c *Consumed
}

// Received takes in a run of arrivals.
func (a consumedArrivals) Received(batch []run.Arrival, received int64) {
	a.c.mu.Lock()
	a.c.read.records += int64(len(batch))
	for i := range batch {
		a.c.read.bytes += int64(len(batch[i].Key) + len(batch[i].Value))
	}
	a.c.last = max(a.c.last, received)
	a.c.mu.Unlock()
	a.Arrivals.Received(batch, received)
}

// Request takes in rebalances.
func (a consumedArrivals) Request(kind string, from, to int64) {
	if kind == results.SeriesRebalance {
		a.c.mu.Lock()
		if a.c.settled {
			a.c.read.joining += to - from
		}
		a.c.mu.Unlock()
	}
	a.Arrivals.Request(kind, from, to)
}

// Begin prints the names of the columns.
func (c *Consumed) Begin() {
	const rest = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
	switch {
	case c.Hide:
	case c.Detailed:
		c.printf("time, threadId, %s", rest)
	default:
		c.printf("start.time, end.time, %s", rest)
	}
}

// Update prints a line when it is time for one; see Produced.
func (c *Consumed) Update() {
	now := c.Clock.Now()
	c.mu.Lock()
	due := c.settled && now-c.toldAt >= int64(c.Every) && c.read.records > c.told.records
	all, since, from := c.read, c.read.minus(c.told), c.toldAt
	if due {
		c.told, c.toldAt = c.read, now
	}
	c.mu.Unlock()
	if due && c.Detailed {
		c.detail(all, since, from, now)
	}
}

func (c *Consumed) detail(all, since reading, from, to int64) {
	joining := min(since.joining, to-from)
	fetching := to - from - joining
	c.printf("%s, 0, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f\n", c.date(to),
		float64(all.bytes)/megabyte, per(float64(since.bytes)/megabyte, to-from), all.records, per(float64(since.records), to-from),
		wholeMs(joining), wholeMs(fetching), per(float64(since.bytes)/megabyte, fetching), per(float64(since.records), fetching))
}

// End prints the last line, and before it a warning where fewer records were there than were asked for.
func (c *Consumed) End(asked int64, idle time.Duration, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.records < asked && !interrupted {
		c.printf("WARNING: Exiting before consuming the expected number of records: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", idle.Milliseconds())
	}
	end := max(c.last, c.opened+c.read.joining)
	if c.Detailed {
		if c.last > c.toldAt { // what is behind the last line, which Kafka's own leaves out
			c.detail(c.read, c.read.minus(c.told), c.toldAt, c.last)
		}
		return
	}
	elapsed := end - c.opened
	fetching := elapsed - min(c.read.joining, elapsed)
	megabytes, records := float64(c.read.bytes)/megabyte, float64(c.read.records)
	c.printf("%s, %s, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f\n", c.date(c.opened), c.date(end),
		megabytes, per(megabytes, elapsed), c.read.records, per(records, elapsed),
		wholeMs(c.read.joining), wholeMs(fetching), per(megabytes, fetching), per(records, fetching))
}

// date is an instant of the engine's as Kafka's tool prints it, in local time.
func (c *Consumed) date(at int64) string {
	t := time.Now().Add(time.Duration(at - c.Clock.Now()))
	return t.Format("2006-01-02 15:04:05") + fmt.Sprintf(":%03d", t.Nanosecond()/millisecond)
}

func (c *Consumed) printf(format string, a ...any) { _, _ = fmt.Fprintf(c.Out, format, a...) } // the result is beside it
