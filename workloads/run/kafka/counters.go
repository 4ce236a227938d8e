package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// counters add up what requests looked like. They only grow; what was added since the
// measured phase began is what a run reports.
type counters struct {
	requests, batches, messages, bytes, raw, throttle atomic.Int64

	mu        sync.Mutex
	producers []counted
	clients   []*client.Client // all that were made, closed ones too
	kinds     map[string]int64 // requests without an answer, by kind of error
	start     tallies          // as the measured phase began
}

// tallies are the counters at one instant.
type tallies struct {
	requests, batches, messages, bytes, raw, throttle, retries int64
}

// counted is a producer of any form.
type counted interface{ Stats() client.ProducerStats }

func (c *counters) add(p counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.producers = append(c.producers, p)
}

// join keeps a client for its metrics.
func (c *counters) join(cl *client.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = append(c.clients, cl)
}

// Metrics add up those of all clients of the run, from its begin. It is safe for concurrent use,
// also before Prepare and after Finish.
func (t *Target) Metrics() client.Metrics {
	t.counters.mu.Lock()
	clients := slices.Clone(t.counters.clients)
	t.counters.mu.Unlock()
	all := make([]client.Metrics, len(clients))
	for i, c := range clients {
		all[i] = c.Metrics()
	}
	return client.MergeMetrics(all...)
}

func (c *counters) request(i client.RequestInfo) {
	c.requests.Add(1)
	c.batches.Add(int64(i.Batches))
	c.messages.Add(int64(i.Messages))
	c.bytes.Add(int64(i.Bytes))
	c.raw.Add(int64(i.RawBytes))
	c.throttle.Add(int64(i.Throttle))
	if i.Err != nil {
		c.failed(i.Err)
	}
}

// failed counts a request without an answer.
func (c *counters) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds["request: "+client.ErrorKind(err)]++
}

func (c *counters) now() tallies {
	t := tallies{
		requests: c.requests.Load(), batches: c.batches.Load(), messages: c.messages.Load(),
		bytes: c.bytes.Load(), raw: c.raw.Load(), throttle: c.throttle.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.producers {
		t.retries += p.Stats().Retries
	}
	return t
}

// Mark notes the counters at an edge of the measured phase.
func (t *Target) Mark(_ context.Context, edge run.Edge) {
	for _, g := range t.groups {
		at := t.o.Clock.Now()
		g.with(func(c *coverage) {
			if edge == run.MeasureStart {
				c.begin(at)
			} else {
				c.end(at)
			}
		})
	}
	now := t.counters.now()
	t.counters.mu.Lock()
	defer t.counters.mu.Unlock()
	if edge == run.MeasureStart {
		t.counters.start = now
		t.startWatch()
	}
}

// sinceStart is what was added since the measured phase began, the drain included: the requests of
// its last messages, on a slow cluster all of them, end in it.
func (c *counters) sinceStart() results.Batches {
	end := c.now()
	c.mu.Lock()
	from := c.start
	c.mu.Unlock()
	b := results.Batches{
		Requests: end.requests - from.requests, Batches: end.batches - from.batches,
		Retries: end.retries - from.retries, ThrottleNs: end.throttle - from.throttle, CompressionRatio: 1,
	}
	messages, bytes := float64(end.messages-from.messages), float64(end.bytes-from.bytes)
	if b.Batches > 0 {
		b.MessagesPerBatch, b.BytesPerBatch = messages/float64(b.Batches), bytes/float64(b.Batches)
		b.CompressionRatio = float64(end.raw-from.raw) / bytes
	}
	if b.Requests > 0 {
		b.MessagesPerRequest = messages / float64(b.Requests)
	}
	return b
}

// Report describes the topics before and after the run, and what its requests looked like.
func (t *Target) Report(ctx context.Context) (run.Report, error) {
	t.stopWatch()
	r := run.Report{Batches: t.counters.sinceStart()}
	t.counters.mu.Lock()
	r.Errors = maps.Clone(t.counters.kinds)
	t.counters.mu.Unlock()
	t.reportGroups(&r)
	for i, name := range t.topics {
		d := &t.before[i]
		topic := results.Topic{
			Name: name, Partitions: t.parts[name], LeadersBefore: d.Leaders, ISRBefore: sizes(d.ISR),
		}
		if len(d.Replicas) > 0 {
			topic.ReplicationFactor = int16(len(d.Replicas[0]))
		}
		after, err := t.admin.DescribeTopic(ctx, name)
		if err != nil {
			return r, err
		}
		topic.LeadersAfter, topic.ISRAfter = after.Leaders, sizes(after.ISR)
		if w := t.topicWatcher.watch; w != nil {
			w.saw(i, t.o.Clock.Now(), after)
			topic.LeadersMoved, topic.ISRShrunk = len(w.moved[i]), len(w.shrunk[i])
		}
		if topic.Config, err = t.admin.TopicConfig(ctx, name); err != nil {
			return r, err
		}
		r.Topics = append(r.Topics, topic)
	}
	if w := t.topicWatcher.watch; w != nil {
		r.Events, r.Moves = append(r.Events, w.events...), w.moves
	}
	return r, nil
}

func sizes(sets [][]int32) []int {
	out := make([]int, len(sets))
	for i, s := range sets {
		out[i] = len(s)
	}
	return out
}
