package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/results/hist"
)

// The values of StartOffset and SetOffset that stand for the ends of the log.
const (
	FirstOffset int64 = fetch.First
	LastOffset  int64 = fetch.Last
)

// ReaderConfig says what a Reader reads. How it fetches stands in Config.Consumer.
type ReaderConfig struct {
	// Client is shared with others and must outlive the reader. Without one, the reader makes a
	// client of its own from Brokers and Config (nil: the defaults).
	Client  *Client
	Brokers []string
	Config  *Config

	Topic string
	// Partition is what is read when Partitions is empty. Partitions are read over one
	// connection per broker; messages of one partition come in order.
	Partition  int32
	Partitions []int32
	// GroupID would make the reader a member of a consumer group; see ErrGroupUnsupported.
	GroupID string

	// StartOffset is where every partition starts: FirstOffset, LastOffset (only messages that
	// are written from now on), or an offset. 0, the zero value, means FirstOffset.
	StartOffset int64
	// QueueBytes bounds the memory of answers that wait to be read; no further Fetch is sent
	// beyond it, or beyond Consumer.QueueCapacity batches. One answer per broker may come on
	// top, which was under way. 0: Consumer.MaxBytes.
	QueueBytes int
	// MaxAttempts is how many failures in a row that may pass (an unreachable broker, a missing
	// leader) are kept quiet about before one is returned as a ReadError that is Passing; the
	// reader goes on trying. 0: they are never returned, only logged and counted.
	MaxAttempts int

	// OnFetch is told of every Fetch request, from the reader's own goroutines, one at a time
	// per broker. It must not block. A panic in it is contained and logged.
	OnFetch func(FetchStats)

	// Logger gets what happens to partitions and connections, ErrorLogger what goes wrong. Nil:
	// the client's Logger.
	Logger, ErrorLogger *slog.Logger
}

// FetchStats are the facts of one finished Fetch request.
type FetchStats struct {
	Broker        int32
	Written, Read time.Time     // monotonic; zero where it did not come so far
	Bytes         int           // of the answer
	Throttle      time.Duration // what the broker asked for
	Err           error         // of the request as a whole
}

// Reader reads partitions of one topic, with offsets of the application's own. It asks ahead of
// the application, in the background, within the bounds of its configuration.
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

	wakeDirector chan struct{} // one token; anybody writes without blocking, the director reads
	ready        chan struct{} // one token: there is something to read; consumers read

	mu      sync.Mutex
	closed  bool
	parts   []*partition // in the order given
	byID    map[int32]*partition
	sources map[*Broker]*source
	queue   blocks
	batches int // in queue
	moving  int // partitions that do not stand still after a failure
	lastErr error
	stats   ReaderStats
	latency *hist.Histogram

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

func (c *ReaderConfig) validate() error {
	var p problems
	if c.GroupID != "" {
		return ErrGroupUnsupported
	}
	if c.Client == nil && len(c.Brokers) == 0 {
		p.add("brokers", "neither a client nor brokers are given")
	}
	if c.Client != nil && (len(c.Brokers) > 0 || c.Config != nil) {
		p.add("client", "a shared client has its own brokers and configuration; give one or the other")
	}
	if c.Topic == "" {
		p.add("topic", "is missing")
	}
	if len(c.Partitions) > 0 && c.Partition != 0 {
		p.add("partition", "give either partition or partitions")
	}
	seen := map[int32]bool{}
	for _, n := range c.partitions() {
		if n < 0 || seen[n] {
			p.add("partitions", "partition %d is negative, or given twice", n)
		}
		seen[n] = true
	}
	if c.StartOffset < FirstOffset {
		p.add("startOffset", "is %d; offsets are 0 or more, or FirstOffset or LastOffset", c.StartOffset)
	}
	p.atLeast("queueBytes", c.QueueBytes, 0)
	p.atLeast("maxAttempts", c.MaxAttempts, 0)
	if len(p) > 0 {
		return &ConfigError{Problems: p}
	}
	return nil
}

func (c *ReaderConfig) partitions() []int32 {
	if len(c.Partitions) == 0 {
		return []int32{c.Partition}
	}
	return c.Partitions
}

func newReader(cfg ReaderConfig, c *Client, own bool) (*Reader, error) {
	if c.Closed() {
		return nil, ErrClosed
	}
	r := &Reader{
		cfg: cfg, client: c, own: own, consume: c.cfg.Consumer,
		byID: map[int32]*partition{}, sources: map[*Broker]*source{}, keys: map[string]string{},
		wakeDirector: make(chan struct{}, 1), ready: make(chan struct{}, 1), latency: hist.New(),
	}
	r.applySettings(c.cfg)
	start := cfg.StartOffset
	if start == 0 {
		start = FirstOffset
	}
	for _, id := range cfg.partitions() {
		p := &partition{id: id, pos: start, hwm: -1, replica: -1, epoch: -1}
		p.MoveTo(start)
		r.parts = append(r.parts, p)
		r.byID[id] = p
	}
	r.moving = len(r.parts)
	r.life, r.end = context.WithCancel(c.life)
	c.use([]string{cfg.Topic})
	r.wg.Add(1)
	// Owned by the reader; stopped by life; Close waits.
	go r.direct()
	return r, nil
}

// answerOverhead is what an answer may hold beside records: what is asked for stays below the
// largest answer accepted by that much.
const answerOverhead = 64 << 10

func (r *Reader) applySettings(cfg Config) {
	consume := cfg.Consumer
	r.backoff = fetch.Backoff{Min: consume.ReadBackoffMin, Max: max(consume.ReadBackoffMax, consume.ReadBackoffMin)}
	switch consume.OutOfRange {
	case "earliest":
		r.policy = fetch.Earliest
	case "latest":
		r.policy = fetch.Latest
	}
	limit := max(cfg.Net.MaxResponseBytes-answerOverhead, 1)
	r.rules = fetchRules{
		minBytes: min(consume.MinBytes, limit), maxBytes: min(consume.MaxBytes, limit),
		partBytes: min(consume.MaxPartitionBytes, limit), limit: limit,
	}
	if r.cfg.QueueBytes == 0 {
		r.cfg.QueueBytes = consume.MaxBytes
	}
	r.answers.most, r.plain.most = r.cfg.QueueBytes, 8<<20
	r.log, r.errLog = r.cfg.Logger, r.cfg.ErrorLogger
	for _, l := range []**slog.Logger{&r.log, &r.errLog} {
		if *l == nil {
			*l = cfg.Logger
		}
		if *l == nil {
			*l = slog.New(slog.DiscardHandler)
		}
	}
}

// Close ends the reader: whoever waits in it returns io.EOF, as everything does afterwards. What
// was fetched and not read is dropped. The second Close does nothing.
func (r *Reader) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.wg.Wait() // bounded: everything in there obeys life
	r.mu.Lock()
	r.queue = blocks{}
	r.batches = 0
	r.mu.Unlock()
	if r.own {
		if err := r.client.Close(); err != nil && !errors.Is(err, ErrClosed) {
			return fmt.Errorf("closing the reader's client: %w", err)
		}
	}
	return nil
}
