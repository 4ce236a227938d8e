package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/results/hist"
)

// Reader reads partitions: those it is given, with offsets of the application's own, or, as a member of
// a consumer group (ReaderConfig.GroupID), those that the group assigns to it, from where the group
// has committed. It asks ahead of the application, in the background, within the bounds of its
// configuration.
//
// All methods are safe for concurrent use, except that FetchBatch is for one goroutine at a time.
//
// Lock order: take, then mu. Neither is held while anything waits or a user's function runs.
type Reader struct {
	cfg     ReaderConfig
	consume ConsumerConfig
	client  *Client
	own     bool // the client is the reader's own
	policy  fetch.Policy
	backoff fetch.Backoff
	rules   fetchRules
	log     *slog.Logger
	errLog  *slog.Logger

	life context.Context // ends with Close or with the client
	end  context.CancelFunc
	wg   sync.WaitGroup // director and sources; Close waits

	answers buffers // of what was fetched
	plain   buffers // of what was decompressed

	group *membership // nil without a group

	// What a group is told of the application: calls that found nothing, those that wait now, and
	// that the group wants to know of the next one. Deliveries are counted in stats anyway.
	asks    atomic.Int64
	waiting atomic.Int32
	away    atomic.Bool

	wakeDirector chan struct{} // one token; anybody writes without blocking, the director reads
	ready        chan struct{} // one token: there is something to read; consumers read

	mu      sync.Mutex
	closed  bool
	parts   []*partition // in the order in which they came
	byPlace map[topicPartition]*partition
	sources map[*Broker]*source
	queue   blocks
	batches int // in queue
	moving  int // partitions that do not stand still after a failure
	lastErr error
	cut     []*partition // whose log was cut and whose marks have to follow; see rewindMarks
	anyCut  atomic.Bool
	failed  error // what ended the run of the group; nil: nothing
	stats   ReaderStats
	latency *hist.Histogram

	rebalanceTimes, commitTimes latencies

	// What follows belongs to who holds take: the one that consumes.
	take    sync.Mutex
	cur     cursor
	lent    []*buffer // what the last FetchBatch's messages alias
	headers []Header  // of the last FetchBatch's messages, the first lentHeaders of them

	lentHeaders int
	slab        slab
	keys        map[string]string // header keys seen
	grown       int               // size of the last batch decompressed
}

// fetchRules is what the settings of all requests come to.
type fetchRules struct {
	minBytes, maxBytes, partBytes, limit int
}

// NewReader makes a reader. It returns at once where it shares a client, and otherwise as soon
// as the cluster was reached; topics and offsets are looked up in the background, and what goes
// wrong with them is returned by the Fetch methods.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Client != nil {
		return newReader(cfg, cfg.Client, false)
	}
	c, err := NewClient(cfg.Brokers, cfg.Config)
	if err != nil {
		return nil, err
	}
	r, err := newReader(cfg, c, true)
	if err != nil {
		_ = c.Close()
	}
	return r, err
}

// NewReader makes a reader that shares the client; cfg.Client is filled in.
func (c *Client) NewReader(cfg ReaderConfig) (*Reader, error) {
	cfg.Client = c
	return NewReader(cfg)
}

func newReader(cfg ReaderConfig, c *Client, own bool) (*Reader, error) {
	if c.Closed() {
		return nil, ErrClosed
	}
	if cfg.GroupID != "" {
		if err := cfg.validateTimes(c.cfg.Consumer.Group); err != nil {
			return nil, err
		}
	}
	r := &Reader{
		cfg: cfg, client: c, own: own, consume: c.cfg.Consumer,
		byPlace: map[topicPartition]*partition{}, sources: map[*Broker]*source{}, keys: map[string]string{},
		wakeDirector: make(chan struct{}, 1), ready: make(chan struct{}, 1), latency: hist.New(),
	}
	r.applySettings(c.cfg)
	r.life, r.end = context.WithCancel(c.life)
	if cfg.GroupID != "" {
		r.group = newMembership(r)
	} else {
		r.assign(noAssignment, cfg.starts())
	}
	r.wg.Add(1)
	// Owned by the reader; stopped by life; Close waits.
	go r.direct()
	if r.group != nil {
		r.group.start()
	}
	return r, nil
}

// Close ends the reader: whoever waits in it returns io.EOF, as everything does afterwards. What
// was fetched and not read is dropped. A member of a group first commits what is marked, and leaves.
//
// It is bounded. A member waits for OnAssigned and OnRevoked for RebalanceTimeout, 15 s at most, for
// its last commit as long again, and a few seconds for the brokers to hear of it. A function of the
// user's that has not returned by then (OnFetch has 15 s) is left to itself: everything is closed all
// the same, what is marked is committed, and Close returns a
// *HookError. The second Close does nothing.
func (r *Reader) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	var left error
	if r.group != nil {
		left = r.group.close() // bounded: see leave
	}
	r.end()
	left = errors.Join(left, r.awaitEnd())
	r.mu.Lock()
	r.queue = blocks{}
	r.batches = 0
	r.mu.Unlock()
	if r.own {
		if err := r.client.Close(); err != nil && !errors.Is(err, ErrClosed) {
			left = errors.Join(left, fmt.Errorf("closing the reader's client: %w", err))
		}
	}
	return left
}
