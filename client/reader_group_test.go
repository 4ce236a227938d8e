package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// crew is a group on a bed, and what its members have read together.
type crew struct {
	*readerBed
	name  string
	addrs []string
	topic string // that is read unless a member says otherwise

	mu    sync.Mutex
	seen  map[string]int // by topic, partition and value
	bad   []string       // what must not happen
	hands []*hand
}

func newCrew(t testing.TB, o broker.Options, partitions int, change func(*Config)) *crew {
	quick := func(c *Config) {
		c.Consumer.Group.HeartbeatInterval, c.Consumer.Group.SessionTimeout = 20*time.Millisecond, 2*time.Second
		c.Consumer.Group.RebalanceTimeout, c.Consumer.Group.TopicInterval = 10*time.Second, 50*time.Millisecond
		c.Admin.Retry = RetryConfig{Max: 1 << 20, Backoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
		if change != nil {
			change(c)
		}
	}
	o.Config = map[string]string{
		"group.min.session.timeout.ms": "100", "group.consumer.heartbeat.interval.ms": "20", "group.consumer.session.timeout.ms": "1000",
	}
	bed := newReaderBed(t, o, partitions, quick)
	return &crew{readerBed: bed, name: "crew", addrs: bed.cluster.Bootstrap(), topic: "in", seen: map[string]int{}}
}

// hand is one member, with a client of its own, which reads and commits until it is closed.
type hand struct {
	*crew
	r *Reader
	c *Client

	mu      sync.Mutex
	held    []TopicPartition
	revoked []TopicPartition
	took    int // times that OnAssigned was called
	done    chan struct{}
	doing   atomic.Value // string, of work
}

// member makes a member that does nothing by itself.
func (c *crew) member(cfg ReaderConfig) *hand {
	h := &hand{crew: c, done: make(chan struct{})}
	own := h.crew.client.Config()
	var err error
	h.c, err = NewClient(c.addrs, &own)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = h.c.Close() })
	h.doing.Store("nothing")
	h.r = c.attach(h, h.c, cfg)
	c.mu.Lock()
	c.hands = append(c.hands, h)
	c.mu.Unlock()
	return h
}

func (c *crew) attach(h *hand, client *Client, cfg ReaderConfig) *Reader {
	cfg.GroupID = c.name
	if len(cfg.Topics) == 0 && cfg.TopicPattern == "" {
		cfg.Topics = []string{c.topic}
	}
	assigned, revoked := cfg.OnAssigned, cfg.OnRevoked
	cfg.OnAssigned = func(generation int32, parts []TopicPartition) {
		h.mu.Lock()
		h.held = append(h.held, parts...)
		h.took++
		h.mu.Unlock()
		if assigned != nil {
			assigned(generation, parts)
		}
	}
	cfg.OnRevoked = func(generation int32, parts []TopicPartition) {
		if revoked != nil {
			revoked(generation, parts)
		}
		h.mu.Lock()
		h.revoked = append(h.revoked, parts...)
		h.held = slices.DeleteFunc(h.held, func(p TopicPartition) bool { return slices.Contains(parts, p) })
		h.mu.Unlock()
	}
	r, err := client.NewReader(cfg)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = r.Close() })
	return r
}

// works makes a member that reads and commits until it is closed.
func (c *crew) works(cfg ReaderConfig) *hand {
	h := c.member(cfg)
	go h.work()
	return h
}

func (h *hand) work() {
	defer close(h.done)
	defer h.doing.Store("nothing more")
	next := map[TopicPartition]int64{}
	for {
		h.doing.Store("reading")
		m, err := h.r.FetchMessage(context.Background())
		if errors.Is(err, io.EOF) || errors.Is(err, ErrClosed) {
			return
		}
		if err != nil {
			h.complain("reading: %v", err)
			return
		}
		at := TopicPartition{m.Topic, m.Partition}
		if !h.holds(at) {
			h.complain("partition %v was read, which is not held", at)
		}
		next[at] = m.Offset + 1
		h.doing.Store("committing")
		err = h.r.CommitMessages(context.Background(), m)
		var stale *StaleCommitError
		if err != nil && !errors.As(err, &stale) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, ErrClosed) {
			h.complain("committing: %v", err)
		}
		// Counted last: who has seen everything may close the reader, which commits no more.
		h.crew.mu.Lock()
		h.crew.seen[fmt.Sprintf("%s/%d/%s", m.Topic, m.Partition, m.Value)]++
		h.crew.mu.Unlock()
	}
}

func (h *hand) holds(at TopicPartition) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	// What was fetched just before it was revoked may be counted after.
	return slices.Contains(h.held, at) || slices.Contains(h.revoked, at)
}

func (h *hand) holding() []TopicPartition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.held)
}

func (h *hand) assignments() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.took
}

func (h *hand) complain(format string, a ...any) {
	h.crew.mu.Lock()
	defer h.crew.mu.Unlock()
	h.crew.bad = append(h.crew.bad, fmt.Sprintf(format, a...))
}

// leave closes the member, which leaves the group.
func (h *hand) leave() {
	require.NoError(h.t, h.r.Close())
	<-h.done
}

// kill ends the member without a word to the group.
func (h *hand) kill() {
	require.NoError(h.t, h.c.Close())
	require.NoError(h.t, h.r.Close())
	<-h.done
}

// shared waits until the partitions are shared out in these numbers.
func (c *crew) shared(numbers []int, hands ...*hand) {
	c.t.Helper()
	var last [][]TopicPartition
	c.eventually(func() bool {
		last = nil
		all := map[TopicPartition]bool{}
		var got []int
		for _, h := range hands {
			parts := h.holding()
			last = append(last, parts)
			got = append(got, len(parts))
			for _, p := range parts {
				all[p] = true
			}
		}
		sum := 0
		for _, n := range numbers {
			sum += n
		}
		slices.Sort(got)
		return slices.Equal(got, numbers) && len(all) == sum
	}, func() string { return fmt.Sprintf("held: %v, wanted numbers: %v", last, numbers) })
}

func (c *crew) eventually(ok func() bool, say func() string) {
	c.t.Helper()
	for !ok() {
		select {
		case <-c.ctx.Done():
			c.t.Fatalf("did not happen: %s; %s", say(), c.state())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// state is what there is to say of a crew that does not do what it should.
func (c *crew) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := fmt.Sprintf("complaints: %q", c.bad)
	for i, h := range c.hands {
		s := h.r.Stats()
		s.FetchLatency, s.RebalanceLatency, s.CommitLatency = nil, nil, nil
		out += fmt.Sprintf("\nmember %d holds %v, does %q: %+v", i+1, h.holding(), h.doing.Load(), s)
	}
	stacks := make([]byte, 1<<20)
	return out + "\n" + string(stacks[:runtime.Stack(stacks, true)])
}

// total waits until so many messages have been read, and says how many were read more than once.
func (c *crew) total(n int) (again int) {
	c.t.Helper()
	count := func() (different int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		again = 0
		for _, times := range c.seen {
			different++
			again += times - 1
		}
		return different
	}
	c.eventually(func() bool { return count() >= n }, func() string { return fmt.Sprintf("%d of %d messages read", count(), n) })
	require.Equal(c.t, n, count(), "messages that nobody wrote")
	c.fine()
	return again
}

func (c *crew) fine() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(c.t, c.bad)
}

// writeAll writes values from one number to another to each partition.
func (c *crew) writeAll(partitions, from, to int) {
	for p := range partitions {
		c.writeTo(c.topic, int32(p), values(from, to))
	}
}

func TestAGroupSharesItsPartitions(t *testing.T) {
	for _, balancer := range []string{"range", "roundrobin", "sticky", "cooperative-sticky"} {
		t.Run(balancer, func(t *testing.T) {
			c := newCrew(t, broker.Options{Nodes: 3}, 6, func(c *Config) { c.Consumer.Group.Balancers = Balancers{balancer} })
			three := c.comesAndGoes()
			s := three.r.Stats()
			require.GreaterOrEqual(t, s.Rebalances, int64(3))
			require.Positive(t, s.Commits)
			require.Positive(t, s.LastRebalance)
			require.Equal(t, s.Rebalances, s.RebalanceLatency.Count())
			require.GreaterOrEqual(t, s.RebalanceLatency.Max(), int64(s.LastRebalance))
			require.Equal(t, s.Commits, s.CommitLatency.Count())
			three.leave()
			c.upTo(6, 130)
		})
	}
}
