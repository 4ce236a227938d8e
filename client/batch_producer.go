package client

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/kbench/kbench/client/record"
)

// BatchProducer sends lists of messages, as the first Kafka clients did: it serialises all of them,
// groups them by the broker that leads each one's partition, sends one request to each broker, all
// brokers in parallel, and sends again only what failed, after a backoff and a refresh of metadata.
// Keys and values may be of any type; see Encoder.
//
// In the synchronous mode Send returns when the brokers have answered. In the asynchronous mode
// (Config.Producer.Batch.Async) it queues: the queue is bounded by Producer.Buffer, and sent when a
// trigger of Producer.Flush fires or, with none set, at once. Every message that was taken has
// exactly one outcome, in its fields and, where they are asked for, by Producer.Batch.OnResults or
// on Results.
//
// Messages of one Send, or of Sends that one goroutine makes one after the other, keep their order
// within a partition, through retries too: a partition has one batch on its way at a time. There is
// no idempotence, so that a request whose answer is lost may be written twice; use an AsyncProducer
// where that matters. All methods are safe for concurrent use.
type BatchProducer struct {
	client       *Client
	ownsClient   bool
	cfg          Config
	keys, values Encoder
	async        bool

	// life ends when the producer is closed or cut short; everything that waits obeys it.
	life context.Context
	end  context.CancelFunc

	accounts    accounts
	closing     atomic.Bool
	compressors *record.Pool[*record.Compressor]

	mu      sync.Mutex
	topics  map[string]*batchTopic
	senders map[int32]*batchSender // made when first needed
	idle    []*batchCall           // of the synchronous mode, to be used again

	work   sync.WaitGroup // requests being made, refreshes, and the queue's goroutine
	close  sync.Once
	cut    context.CancelCauseFunc // ends what the closing waits for; set by the first Close
	closed chan struct{}           // closed at the end of the closing
	result error                   // of closing; set before closed is

	queue   batchQueue
	buffer  bufferBound        // of the asynchronous mode
	results chan *BatchMessage // written by the queue's goroutine, closed by Close
	drop    chan struct{}      // closed by Close when its bound has passed: what is not read is dropped
	unread  atomic.Int64       // results that were dropped

	retries, splits, failures, panics, dropped atomic.Int64
}

// batchTopic is what all calls share of one topic: its partitioner, what is known of its limit, and
// the circuit breaker of looking it up.
type batchTopic struct {
	size *sizeLimit

	mu      sync.Mutex
	by      Partitioner
	seen    *topicMeta // as by was asked last
	circuit circuit
}

// NewBatchProducer makes a producer with a client of its own. cfg may be nil for the defaults.
func NewBatchProducer(addrs []string, cfg *Config) (*BatchProducer, error) {
	if cfg != nil {
		if err := checkBatch(cfg); err != nil {
			return nil, err
		}
	}
	c, err := NewClient(addrs, cfg)
	if err != nil {
		return nil, err
	}
	p, err := NewBatchProducerFromClient(c)
	if err != nil {
		_ = c.Close() // the only error is that it was closed before
		return nil, err
	}
	p.ownsClient = true
	return p, nil
}

// NewBatchProducerFromClient makes a producer that shares the client and its connections with
// others. Close the producer before the client.
func NewBatchProducerFromClient(c *Client) (*BatchProducer, error) {
	if c.Closed() {
		return nil, ErrClosed
	}
	if err := checkBatch(&c.cfg); err != nil {
		return nil, err
	}
	p := &BatchProducer{
		client: c, cfg: c.cfg, keys: c.cfg.Producer.Batch.Keys, values: c.cfg.Producer.Batch.Values,
		async:  c.cfg.Producer.Batch.Async,
		topics: map[string]*batchTopic{}, senders: map[int32]*batchSender{},
		closed: make(chan struct{}), drop: make(chan struct{}),
	}
	if p.keys == nil {
		p.keys = DefaultEncoder
	}
	if p.values == nil {
		p.values = DefaultEncoder
	}
	var err error
	if p.compressors, err = record.NewCompressorPool(p.cfg.Producer.Compression, p.cfg.Producer.CompressionLevel, maxIdleCompressors); err != nil {
		return nil, err
	}
	p.accounts.flush = make(chan struct{}, 1)
	p.buffer.maxMessages, p.buffer.maxBytes = int64(p.cfg.Producer.Buffer.Messages), int64(p.cfg.Producer.Buffer.Bytes)
	p.results = make(chan *BatchMessage, p.cfg.ChannelBufferSize)
	p.life, p.end = context.WithCancel(c.life)
	p.queue.init(p)
	return p, nil
}

// maxIdleCompressors bounds what codecs hold while nothing is sent.
const maxIdleCompressors = 4

// checkBatch refuses what this producer cannot do.
func checkBatch(cfg *Config) error {
	if !cfg.Producer.Idempotent {
		return nil
	}
	return &ConfigError{Problems: []ConfigProblem{{Key: "producer.idempotent",
		Text: "the batch producer cannot be idempotent: it is free to send a partition's messages from several calls at once; use an AsyncProducer or a SyncProducer"}}}
}

// Send sends messages together. The error is a *BatchError with those that failed (each has its own
// in Err), or says why none was sent.
//
// In the synchronous mode every message has its outcome when Send returns. When ctx ends before,
// what is undecided fails with its error, and with ErrOutcomeUnknown where a request had left. In a
// function that a producer calls it is ErrInCallback at once, but for OnResults, which may send.
//
// In the asynchronous mode Send returns when the messages are queued, and waits while
// Producer.Buffer is full, until ctx ends. Those in the *BatchError, always the last ones, were not
// taken then; of all others the outcome follows, also of one that could not be encoded. Send looks
// a topic up that nothing is known of yet; where that would wait for itself its messages fail with
// ErrInCallback.
func (p *BatchProducer) Send(ctx context.Context, msgs ...*BatchMessage) error {
	for _, m := range msgs {
		if m == nil {
			return errNilMessage
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if p.async {
		return p.enqueue(ctx, msgs)
	}
	return p.sendNow(ctx, msgs)
}

// sendNow is Send in the synchronous mode.
func (p *BatchProducer) sendNow(ctx context.Context, msgs []*BatchMessage) error {
	if mayNotAsk() {
		return notTaken(msgs, 0, ErrInCallback)
	}
	epoch, err := p.accept(int64(len(msgs)))
	if err != nil {
		return notTaken(msgs, 0, err)
	}
	ctx, release := p.within(ctx)
	defer release()
	p.prepare(ctx, msgs, epoch)
	c := p.call(ctx)
	c.admit(msgs)
	c.finish()
	failed := c.failed
	p.putBack(c)
	if failed == 0 {
		return nil
	}
	return batchFailures(msgs, failed)
}

// accept takes messages into the books, and returns their epoch.
func (p *BatchProducer) accept(n int64) (epoch uint8, err error) {
	if p.closing.Load() {
		return 0, ErrClosed
	}
	epoch = p.accounts.accepted(n)
	if p.closing.Load() { // Close may have looked at the books before this entry
		p.accounts.decided(epoch, n)
		return 0, ErrClosed
	}
	return epoch, nil
}

// within is ctx that also ends with the producer.
func (p *BatchProducer) within(ctx context.Context) (context.Context, func()) {
	if ctx.Done() == nil {
		return p.life, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// notTaken fails messages that were not accepted, from number from on.
func notTaken(msgs []*BatchMessage, from int, err error) error {
	for _, m := range msgs[from:] {
		m.Partition, m.Offset, m.Err = -1, -1, err
	}
	return &BatchError{Failed: msgs[from:], Of: len(msgs)}
}

func batchFailures(msgs []*BatchMessage, n int) error {
	e := &BatchError{Failed: make([]*BatchMessage, 0, n), Of: len(msgs)}
	for _, m := range msgs {
		if m.Err != nil {
			e.Failed = append(e.Failed, m)
		}
	}
	return e
}

// topic is what calls share of a topic, made when first needed.
func (p *BatchProducer) topic(name string) *batchTopic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.topics[name]
	if t == nil {
		t = &batchTopic{size: &sizeLimit{client: p.client, topic: name, life: p.life, tasks: p}}
		p.topics[name] = t
		p.client.use([]string{name})
	}
	return t
}

// started counts a goroutine that Close waits for.
func (p *BatchProducer) started() { p.work.Add(1) }

// ended is the last thing that one does.
func (p *BatchProducer) ended() { p.work.Done() }

// sender is what makes requests to a node, made when first needed.
func (p *BatchProducer) sender(node int32) *batchSender {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.senders[node]
	if s == nil {
		s = &batchSender{p: p, node: node}
		p.senders[node] = s
	}
	return s
}

// Metrics are those of the producer's client, shared or its own; see Client.Metrics.
func (p *BatchProducer) Metrics() Metrics { return p.client.Metrics() }

// Stats may be called at any time.
func (p *BatchProducer) Stats() ProducerStats {
	return ProducerStats{
		Retries: p.retries.Load(), Splits: p.splits.Load(), Failures: p.failures.Load(), Panics: p.panics.Load() + p.client.panics.Load(),
		Dropped: p.dropped.Load(), Open: p.accounts.total(),
	}
}
