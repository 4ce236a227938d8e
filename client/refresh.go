package client

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// refresher makes many wishes for fresh metadata into few requests: one round runs at a time,
// and everybody who comes while it runs shares the next one. A wish never joins the round that
// is under way, whose answer may be older than its reason.
type refresher struct {
	mu      sync.Mutex
	running bool
	next    *round // nil while nobody waits for the next round
	rounds  int64
}

// round is one refresh.
type round struct {
	topics map[string]struct{}
	all    bool
	done   chan struct{} // closed by the running goroutine once err is set
	err    error
}

// RefreshMetadata asks the cluster about the topics given, or about the topics in use when none
// is (every topic with Metadata.Full), and waits for the answer. Concurrent calls are answered
// by few requests. An error about a single topic is not returned here but by what uses the topic.
func (c *Client) RefreshMetadata(ctx context.Context, topics ...string) error {
	c.use(topics)
	return c.refreshRound(ctx, topics, false)
}

func (c *Client) refreshAll(ctx context.Context) error { return c.refreshRound(ctx, nil, true) }

// use remembers topics as in use, so that later refreshes include them.
func (c *Client) use(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		c.used[t] = struct{}{}
	}
}

func (c *Client) refreshRound(ctx context.Context, topics []string, all bool) error {
	r := &c.refresh
	r.mu.Lock()
	if c.life.Err() != nil {
		r.mu.Unlock()
		return ErrClosed
	}
	if r.next == nil {
		r.next = &round{topics: map[string]struct{}{}, done: make(chan struct{})}
	}
	mine := r.next
	mine.all = mine.all || all
	for _, t := range topics {
		mine.topics[t] = struct{}{}
	}
	if !r.running {
		r.running = true
		c.wg.Add(1)
		// Owned by the client; ends when nobody waits for a round, each of which is bounded by
		// Metadata.Timeout and by life; Close waits.
		go c.runRounds()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fmt.Errorf("refreshing metadata: %w", ctx.Err())
	}
}

func (c *Client) runRounds() {
	defer c.wg.Done()
	r := &c.refresh
	for {
		r.mu.Lock()
		if r.next == nil {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		c.pace()
		r.mu.Lock()
		now := r.next
		r.next = nil
		r.rounds++
		r.mu.Unlock()
		now.err = c.runRound(now)
		close(now.done)
	}
}

// pace waits until the topics of the next round were last described a backoff ago, so that
// a thousand partitions losing their leader cost a request or two a backoff. Wishes that come
// meanwhile join the round. Topics nobody has asked about yet wait for nothing.
func (c *Client) pace() {
	c.refresh.mu.Lock()
	var last time.Time
	known := c.meta.Load().topics
	for t := range c.refresh.next.topics {
		if m := known[t]; m != nil && m.fetchedAt.After(last) {
			last = m.fetchedAt
		}
	}
	c.refresh.mu.Unlock()
	if wait := c.metadataWait(1) - time.Since(last); !last.IsZero() && wait > 0 {
		_ = c.sleep(c.life, wait) // an ended client is noticed by the round itself
	}
}

// runRound asks brokers in turn until one answers, with backoff between turns.
func (c *Client) runRound(r *round) error {
	ctx, cancel := context.WithTimeout(c.life, c.cfg.Metadata.Timeout)
	defer cancel()
	var failures []error
	for attempt := 0; ; attempt++ {
		failures = failures[:0]
		for _, b := range c.candidates() {
			err := c.ask(ctx, b, r)
			if err == nil {
				return nil
			}
			failures = append(failures, err)
		}
		if c.life.Err() != nil {
			return ErrClosed
		}
		if attempt >= c.cfg.Metadata.Retry.Max || fatalContact(failures) ||
			c.sleep(ctx, c.metadataWait(attempt+1)) != nil {
			return noBrokers(failures)
		}
	}
}

// noBrokers is one line that names every address and why it did not answer.
func noBrokers(failures []error) error {
	var texts []string
	for _, f := range failures {
		if s := f.Error(); !slices.Contains(texts, s) {
			texts = append(texts, s)
		}
	}
	text := strings.Join(texts, "; ")
	if !slices.ContainsFunc(failures, func(err error) bool { return !IsRefusal(err) }) {
		return &contactError{text, append([]error{ErrNoBrokers}, failures...)} // reached they were
	}
	return fmt.Errorf("%w: %w", ErrNoBrokers, &contactError{text, failures})
}

// contactError keeps the failures reachable for errors.Is and errors.As behind one line.
type contactError struct {
	text string
	errs []error
}

func (e *contactError) Error() string   { return e.text }
func (e *contactError) Unwrap() []error { return e.errs }

// ask sends one Metadata request and takes in the answer.
func (c *Client) ask(ctx context.Context, b *Broker, r *round) error {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = c.cfg.Metadata.AllowAutoTopicCreation
	full := r.all || c.cfg.Metadata.Full && len(r.topics) == 0
	if !full {
		req.Topics = []kmsg.MetadataRequestTopic{}
		for _, t := range c.wanted(r) {
			topic := kmsg.NewMetadataRequestTopic()
			topic.Topic = kmsg.StringPtr(t)
			req.Topics = append(req.Topics, topic)
		}
	}
	// A broker that is silent must not take the time of those that would answer.
	share := c.cfg.Metadata.Timeout / 3
	short, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	resp, err := b.Request(short, req)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return &addressError{b.addr, &silentError{share}}
	}
	if err != nil {
		return err
	}
	m, ok := resp.(*kmsg.MetadataResponse)
	switch {
	case !ok:
		return fmt.Errorf("broker %s answered Metadata with %T", b.addr, resp)
	case len(m.Brokers) == 0:
		return &addressError{b.addr, startingError{}}
	}
	c.adopt(m, full)
	return nil
}

// wanted are the topics of a round: those asked for, or all in use when none is.
func (c *Client) wanted(r *round) []string {
	if len(r.topics) > 0 {
		return slices.Sorted(maps.Keys(r.topics))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.used))
}

// adopt takes in an answer: brokers that are new, moved or gone, then topics and leaders. The
// connection the answer came on becomes that of the node behind it, where the cluster
// advertises the address that was dialled. No healthy connection is closed but that of a node
// that is gone or has moved, and that one only when its requests have been answered.
func (c *Client) adopt(r *kmsg.MetadataResponse, full bool) {
	c.mu.Lock()
	next := c.meta.Load().merge(r, full, time.Now())
	var gone []*Broker
	for id, m := range next.brokers {
		old := c.nodes[id]
		if old != nil && old.addr == m.addr {
			old.setRack(m.rack)
			continue
		}
		if old != nil {
			gone = append(gone, old)
			c.keepMetrics(old)
		}
		c.nodes[id] = c.nodeAt(id, m)
	}
	for id, b := range c.nodes {
		if _, known := next.brokers[id]; !known {
			gone = append(gone, b)
			c.keepMetrics(b)
			delete(c.nodes, id)
		}
	}
	c.meta.Store(next)
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return
	}
	for _, b := range gone {
		if c.isSeed(b) {
			b.id.Store(-1) // an address to ask again when no other answers
		} else {
			b.retire()
		}
	}
}

// nodeAt is the broker for a node at an address: the seed with that address, whose connection is
// then reused, or a new one. Called with mu held.
func (c *Client) nodeAt(id int32, m brokerMeta) *Broker {
	for _, s := range c.seeds {
		if s.addr == m.addr {
			s.id.Store(id)
			s.setRack(m.rack)
			return s
		}
	}
	b := newBroker(c.life, id, m.addr, c.opts)
	c.measureAsBefore(b)
	b.setRack(m.rack)
	return b
}

func (b *Broker) setRack(rack string) { b.rack.Store(&rack) }

func (c *Client) isSeed(b *Broker) bool { return slices.Contains(c.seeds, b) }

// candidates are the brokers to ask for metadata, best first: those with an open connection and
// nothing in flight, which answer at once, the others with one, where the question waits for what is
// before it, then the other nodes, each in random order, then the seeds. Each is listed once.
func (c *Client) candidates() []*Broker {
	nodes := c.Brokers()
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	ranks := make(map[*Broker]int, len(nodes))
	for _, b := range nodes {
		ranks[b] = rank(b)
	}
	slices.SortStableFunc(nodes, func(a, b *Broker) int { return ranks[a] - ranks[b] })
	for _, s := range c.seeds {
		if !slices.Contains(nodes, s) {
			nodes = append(nodes, s)
		}
	}
	return nodes
}

func rank(b *Broker) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.conn == nil || b.conn.Err() != nil:
		return 2
	case b.conn.InFlight() > 0:
		return 1
	}
	return 0
}

// refreshPeriodically keeps metadata young while nothing fails.
func (c *Client) refreshPeriodically(every time.Duration) {
	defer c.wg.Done()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := c.RefreshMetadata(c.life); err != nil && c.cfg.Logger != nil && c.life.Err() == nil {
				c.cfg.Logger.Warn("background metadata refresh failed", "error", err)
			}
		case <-c.life.Done():
			return
		}
	}
}

// fatalContact says that trying again cannot help: no broker failed in a way that may pass.
func fatalContact(failures []error) bool {
	for _, f := range failures {
		if wire.Classify(f).Has(wire.Retriable) {
			return false
		}
	}
	return len(failures) > 0
}
