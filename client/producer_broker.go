package client

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/record"
)

// brokerProducer is the fourth stage: it collects batches of the partitions one node leads into
// Produce requests, when a flush trigger fires and the connection has room, and takes the
// answers apart. One goroutine (run) collects and writes; answers come on the connection's.
type brokerProducer struct {
	producer *AsyncProducer
	id       int32 // of the node

	messages, bytes atomic.Int64 // waiting in the partitions
	oldest          atomic.Int64 // when the first partition was listed, Unix nanoseconds
	urgent          atomic.Bool  // something must go whatever the triggers say

	outstanding atomic.Int64              // requests being written or in flight
	using       atomic.Pointer[conn.Conn] // the connection of the last one

	wake      chan struct{} // capacity 1; written by signal, read by run; never closed
	signalled atomic.Bool   // spares the channel operation while run is awake

	users int         // partitions that send to it, or are about to; guarded by the producer's mu
	left  atomic.Bool // one of them has left since run noticed

	mu     sync.Mutex
	listed []*partitionProducer // those with something to send
	idle   []*request           // to be used again

	// Only run uses these.
	looking    []*partitionProducer
	turn       int // counts requests; which partition is first, so that none starves
	compressor *record.Compressor
	hand       *request // being collected and encoded; nil once it is written, or has failed
	timer      *time.Timer
	failures   int        // to connect, in a row
	mourned    *conn.Conn // the last connection whose end was reported; only with acks=0
	notUntil   time.Time  // end of the backoff after them
	lookAt     time.Time  // when to find out whether anybody uses it; zero: no reason to
}

func newBrokerProducer(p *AsyncProducer, id int32) (*brokerProducer, error) {
	c, err := record.NewCompressor(p.cfg.Producer.Compression, p.cfg.Producer.CompressionLevel)
	if err != nil {
		return nil, err
	}
	return &brokerProducer{producer: p, id: id, compressor: c, wake: make(chan struct{}, 1)}, nil
}

// added says that more waits in p, which is put on the list. full: some of it is a full batch.
// Called with p.mu held.
func (b *brokerProducer) added(p *partitionProducer, w weight, full bool) {
	first := b.list(p) // first, so that run never sees messages without the time of the oldest
	messages, bytes := b.messages.Add(w.messages), b.bytes.Add(w.bytes)
	if full {
		b.urgent.Store(true)
	}
	f := &b.producer.cfg.Producer.Flush
	if first || full || !b.producer.triggers ||
		f.Messages > 0 && messages >= int64(f.Messages) || f.Bytes > 0 && bytes >= int64(f.Bytes) {
		b.signal()
	}
}

// put counts a batch that came back; retry, once the partition may send again, wakes run.
func (b *brokerProducer) put(w weight) {
	b.messages.Add(w.messages)
	b.bytes.Add(w.bytes)
}

func (b *brokerProducer) removed(w weight) {
	b.messages.Add(-w.messages)
	b.bytes.Add(-w.bytes)
}

// retry puts p on the list for a batch that waits for no trigger. Called with p.mu held.
func (b *brokerProducer) retry(p *partitionProducer) {
	b.list(p)
	b.urgent.Store(true)
	b.signal()
}

// list puts p on the list unless it is there, and says whether it was not. Called with p.mu held.
func (b *brokerProducer) list(p *partitionProducer) bool {
	if p.listed.Load() {
		return false
	}
	p.listed.Store(true)
	b.mu.Lock()
	if len(b.listed) == 0 {
		b.oldest.Store(p.now.UnixNano())
	}
	b.listed = append(b.listed, p)
	b.mu.Unlock()
	return true
}

// signal wakes run, or keeps it from falling asleep.
func (b *brokerProducer) signal() {
	if b.signalled.Load() || !b.signalled.CompareAndSwap(false, true) {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run sends until the producer is done, or nobody has used it for a while.
func (b *brokerProducer) run() {
	defer b.producer.senders.Done()
	b.timer = time.NewTimer(time.Hour)
	defer b.timer.Stop()
	for b.producer.life.Err() == nil {
		b.signalled.Store(false)
		now := time.Now()
		at := b.turnOver(now)
		if at.IsZero() {
			continue
		}
		again, needed := b.needed(now)
		if !needed {
			return
		}
		if again.Before(at) {
			at = again
		}
		b.sleep(now, at)
	}
}

// turnOver sends what is due. It returns when to look again, zero for at once.
func (b *brokerProducer) turnOver(now time.Time) (at time.Time) {
	defer func() {
		if v := recover(); v != nil {
			at = b.panicked(v, now)
		}
	}()
	at, ready := b.due(now)
	if ready {
		at = b.send(now)
	}
	return at
}

// panicked fails what was being sent, and what waits for this node, after a panic, so that the
// producer goes on, after a backoff.
func (b *brokerProducer) panicked(v any, now time.Time) time.Time {
	err := b.producer.caught("the broker producer", v)
	if r := b.hand; r != nil {
		b.hand = nil
		r.drop(err)
	}
	return b.unreachable(err, now)
}

// far is the time to wait for when only a signal can change anything.
var far = time.Unix(1<<40, 0)

// due says whether something is to be sent now, or else when to look again.
func (b *brokerProducer) due(now time.Time) (at time.Time, ready bool) {
	waiting := b.messages.Load()
	if waiting <= 0 && !b.urgent.Load() {
		return far, false
	}
	if now.Before(b.notUntil) {
		return b.notUntil, false
	}
	cfg := &b.producer.cfg.Producer
	f := &cfg.Flush
	if !b.producer.triggers || b.urgent.Load() || b.producer.flushing.Load() > 0 ||
		f.Messages > 0 && waiting >= int64(f.Messages) || f.Bytes > 0 && b.bytes.Load() >= int64(f.Bytes) {
		return at, true
	}
	at = far
	oldest := time.Unix(0, b.oldest.Load())
	if f.Frequency > 0 {
		at = oldest.Add(f.Frequency)
	} else if cfg.DeliveryTimeout > 0 {
		at = oldest.Add(cfg.DeliveryTimeout / 2) // rather early than never: no trigger may come any more
	}
	return at, !now.Before(at)
}

// sleep waits for a signal, and no longer than until at.
func (b *brokerProducer) sleep(now, at time.Time) {
	var due <-chan time.Time
	if at != far { // the timer would cost every message that is sent by itself a little
		b.timer.Reset(at.Sub(now))
		due = b.timer.C
	}
	select {
	case <-b.wake:
	case <-due:
	case <-b.unanswered():
	case <-b.producer.life.Done():
	}
	b.reportDrop()
}

// unanswered is closed when the connection is, as far as nobody else would notice: with acks=0
// nothing waits for an answer, and closing the connection is all that a broker can say to a
// request that it refuses.
func (b *brokerProducer) unanswered() <-chan struct{} {
	if b.producer.cfg.Producer.RequiredAcks != AcksNone {
		return nil
	}
	if c := b.using.Load(); c != nil && c != b.mourned {
		return c.Done()
	}
	return nil
}

// reportDrop tells of a connection that was lost with acks=0: what was written to it last, and
// counts as sent, may not be in the log.
func (b *brokerProducer) reportDrop() {
	c := b.using.Load()
	if b.producer.cfg.Producer.RequiredAcks != AcksNone || c == nil || c == b.mourned || c.Err() == nil || b.producer.aborted() {
		return
	}
	b.mourned = c
	p := b.producer
	reportDropped(&p.cfg, &p.panics, &p.dropped, b.id, c)
}

// send sends one request with what waits. It returns when to look again, zero for at once.
func (b *brokerProducer) send(now time.Time) (at time.Time) {
	c, version, err := b.producer.client.produceConn(b.producer.life, b.id)
	if err != nil {
		return b.unreachable(err, now)
	}
	who, version, err := b.producer.sendAs(version)
	if err != nil {
		return b.unreachable(err, now)
	}
	b.reportDrop()
	b.failures = 0
	acks := b.producer.cfg.Producer.RequiredAcks
	if acks != AcksNone {
		if err := c.Acquire(b.producer.life); err != nil {
			return b.unreachable(err, now)
		}
		now = time.Now() // a slot may have taken its time
	}
	r := b.request()
	b.hand, r.conn = r, c
	at = b.collect(r, who, now)
	if len(r.batches) == 0 {
		b.hand = nil
		b.reuse(r)
		if acks != AcksNone {
			c.Release()
		}
		if b.urgent.Load() {
			return time.Time{} // a numbering starts anew
		}
		return at
	}
	r.submit(c, version)
	return time.Time{}
}

// unreachable sends every partition with something waiting to look for its leader, and waits
// before the next try to connect.
func (b *brokerProducer) unreachable(err error, now time.Time) time.Time {
	b.failures++
	b.notUntil = now.Add(b.producer.retryWait(b.failures))
	b.urgent.Store(false)
	b.takeList()
	for _, p := range b.looking {
		p.lost(b, err, now)
	}
	clear(b.looking)
	b.looking = b.looking[:0]
	return b.notUntil
}

// takeList moves the list into looking.
func (b *brokerProducer) takeList() {
	b.mu.Lock()
	b.looking = append(b.looking, b.listed...)
	clear(b.listed)
	b.listed = b.listed[:0]
	b.mu.Unlock()
}

// collect fills a request with the next batch of each listed partition, as far as they fit.
// With nothing found it returns when to look again.
func (b *brokerProducer) collect(r *request, who identity, now time.Time) (at time.Time) {
	b.urgent.Store(false)
	b.takeList()
	at = far
	room := b.producer.cfg.Producer.MaxRequestBytes
	b.turn++
	for i := range b.looking {
		p := b.looking[(i+b.turn)%len(b.looking)]
		fits := room
		if len(r.batches) == 0 {
			fits = math.MaxInt // the first always does, or it would never leave
		}
		t, more, until := p.take(b, r.conn, who, now, fits)
		if t != nil {
			room -= t.bytes()
			r.batches = append(r.batches, t)
		}
		if !until.IsZero() && until.Before(at) {
			at = until
		}
		if more {
			b.keep(p, until.IsZero())
		}
	}
	clear(b.looking)
	b.looking = b.looking[:0]
	return at
}

// keep leaves p on the list for the next request.
func (b *brokerProducer) keep(p *partitionProducer, urgent bool) {
	b.mu.Lock()
	b.listed = append(b.listed, p)
	b.mu.Unlock()
	if urgent {
		b.urgent.Store(true)
	}
}
