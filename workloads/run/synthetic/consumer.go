package synthetic

import (
	"context"
	"sync"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/pace"
	"github.com/kbench/kbench/workloads/payload"
	"github.com/kbench/kbench/workloads/run"
)

// consumer is one consumer of a Target.
type consumer struct {
	target *Target
	who    run.Member
	in     run.Arrivals
	// kick holds a token when something was queued; the target writes, Run reads.
	kick chan struct{}

	mu    sync.Mutex
	queue []arrival
	free  int64 // when it has received everything so far, at its speed; of Run alone

	feed pace.Schedule // someone else's messages; of Run alone, like what follows
	fed  int64
}

// arrival is one message on its way to a consumer.
type arrival struct {
	at int64
	run.Arrival
}

// every reports whether a number is one of every n; never when n is 0.
func every(number, n int64) bool { return n > 0 && number%n == n-1 }

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// Run hands over arrivals when their time has come, stamped by the consumer's own clock.
func (c *consumer) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []run.Arrival
	var received int64
	c.feed = pace.Constant(c.target.script.Feed)
	begin := c.target.clock.Now()
	c.free = begin
	for {
		batch = c.foreign(batch[:0], begin)
		at, wait := c.target.clock.Now(), time.Duration(0)
		if len(batch) == 0 {
			batch, at, wait = c.due(batch)
			wait = min(wait, time.Duration(c.feed.Due(c.fed)-(c.target.clock.Now()-begin)))
		}
		if n := len(batch); n > 0 {
			c.in.Received(batch, at+int64(c.target.script.ClockOffset))
			c.in.Request(results.SeriesFetch, at-int64(c.target.script.Delivery), at)
			received += int64(n)
			if err := c.target.script.RunErr; err != nil && received >= c.target.script.RunErrAfter {
				return err
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.kick:
		case <-ctx.Done():
			return nil
		}
	}
}

// foreign takes the messages of someone else that are due by now, stamped by another run.
func (c *consumer) foreign(batch []run.Arrival, begin int64) []run.Arrival {
	due := c.feed.Count(c.target.clock.Now() - begin + 1)
	for ; c.fed < due; c.fed++ {
		value := make([]byte, payload.StampSize+8)
		payload.PutStamp(value, payload.Stamp{Number: c.fed, Due: 1}, nil, value[payload.StampSize:])
		batch = append(batch, run.Arrival{Value: value})
	}
	return batch
}

// due takes the arrivals of one instant, if it has come, or tells how long to wait.
func (c *consumer) due(batch []run.Arrival) ([]run.Arrival, int64, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return batch, 0, time.Hour
	}
	at := c.pace(c.queue[0].at)
	if wait := at - c.target.clock.Now(); wait > 0 {
		return batch, at, time.Duration(wait)
	}
	n := 1
	for c.target.script.Reading <= 0 && n < len(c.queue) && c.queue[n].at == at {
		n++
	}
	for _, a := range c.queue[:n] {
		batch = append(batch, a.Arrival)
	}
	c.queue = c.queue[n:]
	c.received(n, at)
	return batch, at, 0
}

// Close takes the consumer out of its group.
func (c *consumer) Close(context.Context) error {
	c.target.leave(c)
	return nil
}

// Kill is the end of the consumer without a word; here its group notices at once.
func (c *consumer) Kill() { c.target.killed.Add(1) }
