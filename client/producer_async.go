package client

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client/record"
)

// AsyncProducer sends messages in the background. Messages go in by Produce (a callback each),
// ProduceRun (many at a time, outcomes in runs: the fastest way) or the Input channel (outcomes
// on Successes and Errors); every message that went in has exactly one outcome. All methods are
// safe for concurrent use.
//
// Messages handed over by one goroutine to one partition leave in their order. In the log they are
// in that order, once each, with Producer.Idempotent, whatever fails in between. Without it, which
// is the default, a batch whose answer is lost is sent again and may be in the log twice
// (at-least-once), and with Net.MaxOpenRequests above 1, as it is by default, a batch that is sent
// again may come behind later ones that were in flight with it; with 1 the order holds. A
// Producer.Retry.Max of 0 sends nothing again.
//
// Callbacks run on the goroutine that reads the broker's answers: they must not block. They may
// produce again; where Produce would wait for room it then returns ErrBufferFull.
type AsyncProducer struct {
	client     *Client
	ownsClient bool
	cfg        Config
	triggers   bool // any flush trigger is set
	short      bool // a message by itself may go the short way, see direct

	// life ends when the producer is closed or cut short; everything that waits obeys it.
	life  context.Context
	end   context.CancelFunc
	ended <-chan struct{} // life's
	over  atomic.Bool     // life has ended, perhaps a moment ago: for the hot path

	buffer     bufferBound
	accounts   accounts
	expiry     expiry
	identities identities    // of an idempotent producer
	txn        *transactions // nil: not transactional
	flushing   atomic.Int32  // flushes under way: what waits goes, whatever the triggers say
	closing    atomic.Bool   // nothing more is accepted

	last    atomic.Pointer[topicProducer] // the topic of the last message, nearly always the next one's
	mu      sync.Mutex
	topics  map[string]*topicProducer
	parts   []*partitionProducer // all of them, to be woken when the producer is cut short
	brokers map[int32]*brokerProducer

	stages  goroutines     // stage and leader look-up goroutines
	senders sync.WaitGroup // run of the broker producers
	close   sync.Once
	cut     atomic.Pointer[context.CancelCauseFunc] // ends the waiting of the closing; set with closing
	closed  chan struct{}                           // closed by whoever closes the producer, at the end

	input   chan *ProducerMessage // written by the user, read by the dispatcher, never closed
	results results

	retries, splits, failures, panics, dropped atomic.Int64
}

// NewAsyncProducer makes a producer with a client of its own. cfg may be nil for the defaults.
func NewAsyncProducer(addrs []string, cfg *Config) (*AsyncProducer, error) {
	c, err := NewClient(addrs, cfg)
	if err != nil {
		return nil, err
	}
	p, err := NewAsyncProducerFromClient(c)
	if err != nil {
		return nil, err
	}
	p.ownsClient = true
	return p, nil
}

// NewAsyncProducerFromClient makes a producer that shares the client and its connections with
// others. Close the producer before the client.
func NewAsyncProducerFromClient(c *Client) (*AsyncProducer, error) {
	if c.Closed() {
		return nil, ErrClosed
	}
	p := &AsyncProducer{
		client: c, cfg: c.cfg,
		topics: map[string]*topicProducer{}, brokers: map[int32]*brokerProducer{}, closed: make(chan struct{}),
	}
	f := p.cfg.Producer.Flush
	p.triggers = f.Messages > 0 || f.Bytes > 0 || f.Frequency > 0
	p.buffer.maxMessages, p.buffer.maxBytes = int64(p.cfg.Producer.Buffer.Messages), int64(p.cfg.Producer.Buffer.Bytes)
	p.accounts.flush = make(chan struct{}, 1)
	p.expiry.fire = p.expireAll
	p.life, p.end = context.WithCancel(c.life)
	p.ended = p.life.Done()
	context.AfterFunc(p.life, func() { p.over.Store(true) })
	if id := p.cfg.Producer.Transaction.ID; id != "" {
		p.txn = newTransactions(p, id)
	}
	if p.cfg.Producer.NewPartitioner != nil {
		userCode.Add(1)
	}
	p.short = p.txn == nil && p.cfg.Producer.NewPartitioner == nil && len(p.cfg.Producer.Interceptors) == 0
	p.input = make(chan *ProducerMessage, p.cfg.ChannelBufferSize)
	p.results.init(p)
	return p, nil
}

// Produce hands over one message; done gets it back with its outcome, exactly once, unless
// Produce returns an error: then the message was not accepted and done is not called. It waits
// while the bounds (ChannelBufferSize, Producer.Buffer) are full, until ctx ends.
func (p *AsyncProducer) Produce(ctx context.Context, m *ProducerMessage, done func(*ProducerMessage, error)) error {
	if m == nil {
		return errNilMessage
	}
	if done == nil {
		done = func(*ProducerMessage, error) {}
	}
	if taken, err := p.direct(ctx, m, callback(done)); taken {
		return err
	}
	_, err := p.accept(ctx, m.alone(), callback(done), toCallback)
	return err
}

// ProduceRun hands over messages in order; their outcomes go to d. It waits while the bounds are
// full, until ctx ends, and returns how many messages from the beginning of the run were
// accepted: those, and only those, have an outcome. The slice may be used again at once.
func (p *AsyncProducer) ProduceRun(ctx context.Context, run []*ProducerMessage, d Deliveries) (accepted int, err error) {
	if d == nil {
		d = nobody{}
	}
	return p.accept(ctx, run, comparableOf(d), toDeliveries)
}

// nobody is the destination of outcomes that nobody asked for.
type nobody struct{}

// Delivered does nothing.
func (nobody) Delivered([]*ProducerMessage, Delivery) {}

// chunk is how many messages of a run take their place in the buffer together.
const chunk = 256

// accept is the dispatcher: it takes a run into the producer's books, lets the interceptors see
// it, and passes it to its topics.
func (p *AsyncProducer) accept(ctx context.Context, run []*ProducerMessage, sink deliveries, kind way) (accepted int, err error) {
	if p.cfg.Producer.Interceptors != nil {
		for _, m := range run {
			if m != nil {
				p.intercept(m)
			}
		}
	}
	for accepted < len(run) {
		n := p.sameTopic(run[accepted:])
		if n == 0 {
			return accepted, errNilMessage
		}
		part := run[accepted : accepted+n]
		if err := p.admit(ctx, part, sink, kind); err != nil {
			return accepted, err
		}
		if n, err := p.dispatch(ctx, part); err != nil {
			p.withdraw(part[n:])
			return accepted + n, err
		}
		accepted += n
	}
	return accepted, nil
}

// errNilMessage is a mistake of the caller's.
var errNilMessage = errors.New("a message is nil")

// sameTopic is how many messages from the beginning of a run share a topic, and a place in the
// books: 0 when the first is nil.
func (p *AsyncProducer) sameTopic(run []*ProducerMessage) int {
	if run[0] == nil {
		return 0
	}
	most := min(len(run), chunk)
	if b := p.cfg.Producer.Buffer.Messages; b > 0 {
		most = min(most, b)
	}
	for i := 1; i < most; i++ {
		if run[i] == nil || run[i].Topic != run[0].Topic {
			return i
		}
	}
	return most
}

// admit enters messages of one topic into the books, waiting for room.
func (p *AsyncProducer) admit(ctx context.Context, run []*ProducerMessage, sink deliveries, kind way) error {
	if err := p.refuses(kind); err != nil {
		return err
	}
	size := int64(0)
	for _, m := range run {
		m.sink, m.way, m.placed, m.accepted = sink, kind, false, 0
		if m.waited != 0 {
			m.waited = 0 // rarely: its cache line is written for nothing else
		}
		m.size = uint32(min(m.payloadBytes(), math.MaxUint32))
		size += int64(m.size)
	}
	waited, err := p.buffer.acquire(ctx, p.ended, int64(len(run)), size)
	if err != nil {
		return err
	}
	if waited {
		noteWait(run)
	}
	epoch := p.accounts.accepted(int64(len(run)))
	if epoch != 0 {
		for _, m := range run {
			m.way |= way(epoch)
		}
	}
	if err := p.refuses(kind); err != nil { // Close may have looked at the books before this entry
		p.withdraw(run)
		return err
	}
	return nil
}

// refuses is why messages are not taken: closing has begun, from when on only what the Input
// channel held is, or no transaction is open.
func (p *AsyncProducer) refuses(kind way) error {
	if p.closing.Load() && kind != toChannels {
		return ErrClosed
	}
	if p.txn != nil {
		return p.txn.refuses()
	}
	return nil
}

// withdraw takes messages that were not accepted after all out of the books.
func (p *AsyncProducer) withdraw(run []*ProducerMessage) {
	for _, m := range run {
		p.buffer.release(1, int64(m.size))
		p.accounts.decided(m.way.epoch(), 1)
	}
}

// dispatch passes messages of one topic to it, but for those that are too large, which fail.
func (p *AsyncProducer) dispatch(ctx context.Context, run []*ProducerMessage) (int, error) {
	t := p.topic(run[0].Topic)
	from := 0
	for i, m := range run {
		large := t.size.check(&p.cfg.Producer, m)
		if large == nil {
			continue
		}
		if n, err := t.stage.push(ctx, p.ended, run[from:i], true); err != nil {
			return from + n, err
		}
		p.fail(run[i:i+1], large)
		from = i + 1
	}
	n, err := t.stage.push(ctx, p.ended, run[from:], true)
	return from + n, err
}

// fitsAlone says whether a batch with nothing but m is within limit bytes. m is in the books.
func fitsAlone(m *ProducerMessage, limit int) bool {
	return int(m.size)+record.HeaderSize+record.MaxRecordOverhead+maxHeaderOverhead*len(m.Headers) <= limit || batchSize(m) <= limit
}

// batchSize is the size of a batch with nothing but m.
func batchSize(m *ProducerMessage) int {
	var b record.Builder
	return b.SizeWith(0, m.Key, m.Value, m.Headers)
}

func tooLarge(m *ProducerMessage, limit int) error {
	return &MessageTooLargeError{Size: batchSize(m), Limit: limit, Whose: ownLimit}
}

// intercept shows a message to the interceptors, in order; one that panics is passed over.
func (p *AsyncProducer) intercept(m *ProducerMessage) { intercept(&p.cfg, &p.panics, m) }

func intercept(cfg *Config, panics *atomic.Int64, m *ProducerMessage) {
	for _, i := range cfg.Producer.Interceptors {
		func() {
			defer func() {
				if v := recover(); v != nil {
					_ = caught(cfg, panics, "a producer interceptor", v) // the message goes on as it is
				}
			}()
			i.OnSend(m)
		}()
	}
}

// topic is the topic producer of a topic, made when first needed.
func (p *AsyncProducer) topic(name string) *topicProducer {
	if t := p.last.Load(); t != nil && t.topic == name {
		return t
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.topics[name]
	if t == nil {
		t = newTopicProducer(p, name)
		p.topics[name] = t
		p.client.use([]string{name})
	}
	p.last.Store(t)
	return t
}

// remember keeps the partition producers of a topic findable for abort. It is called with all of
// a topic's whenever some are new.
func (p *AsyncProducer) remember(parts []*partitionProducer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pp := range parts {
		if !pp.remembered {
			pp.remembered = true
			p.parts = append(p.parts, pp)
		}
	}
}

func (p *AsyncProducer) aborted() bool { return p.life.Err() != nil }

// ProducerStats counts what a producer has done so far.
type ProducerStats struct {
	Retries  int64 // batches sent again
	Splits   int64 // batches that a broker refused for their size and that were divided (KIP-126)
	Failures int64 // messages that failed
	Panics   int64 // caught in the user's functions, those of the client included, and in the producer's stages
	Dropped  int64 // connections that brokers closed on which nothing is answered (acks=0)
	Open     int64 // messages accepted and not decided, now
}

// Stats may be called at any time.
func (p *AsyncProducer) Stats() ProducerStats {
	return ProducerStats{
		Retries: p.retries.Load(), Splits: p.splits.Load(), Failures: p.failures.Load(), Panics: p.panics.Load() + p.client.panics.Load(),
		Dropped: p.dropped.Load(), Open: p.accounts.total(),
	}
}
