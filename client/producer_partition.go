package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// partitionProducer is the third stage: it encodes the messages of one partition into batches,
// keeps them in order through retries, and finds the partition's leader. Its batches wait here
// until the leader's broker producer takes them, so that they move with the partition when the
// leader does.
type partitionProducer struct {
	producer   *AsyncProducer
	topic      string
	number     int32
	stage      *stage
	remembered bool // by the producer, whose mu guards it

	mu   sync.Mutex
	room sync.Cond // signalled when a batch was taken or decided, and on abort

	broker    *brokerProducer // the leader's; nil while it is not known
	counted   weight          // of what waits here, as broker counts it
	resolving bool            // a goroutine looks for the leader
	listed    bool            // in the broker producer's list of partitions to look at
	taken     int             // the broker producer's turn in which a batch was last taken

	building *batch   // not sealed; nil when nothing waits
	sealed   []*batch // full ones and those to send again, by ordinal
	next     int64    // messages so far: the ordinal of the next batch
	inFlight int
	// draining is set when a batch is to be sent again: nothing of this partition leaves until
	// everything in flight has come back, so that batches leave in order again.
	draining bool
	held     bool // take found something that could not leave yet; see holds
	numbers  numbering
	notUntil time.Time // end of the backoff

	now       time.Time // as last read
	sinceRead int       // messages since
}

// maxSealed is how many full batches wait beside the one being built, before the stage's queue
// has to hold what comes.
const maxSealed = 1

func newPartitionProducer(p *AsyncProducer, topic string, number int32) *partitionProducer {
	pp := &partitionProducer{producer: p, topic: topic, number: number}
	pp.room.L = &pp.mu
	pp.stage = newStage(p.cfg.ChannelBufferSize, &p.stages)
	pp.stage.handle = pp.handle
	return pp
}

// handle encodes a run into batches; see stage.
func (p *partitionProducer) handle(run []*ProducerMessage, wait bool) (left []*ProducerMessage) {
	p.mu.Lock()
	if p.producer.aborted() {
		p.mu.Unlock()
		p.producer.fail(run, ErrClosed)
		return nil
	}
	var added weight
	for len(run) > 0 {
		n, w := p.add(run)
		run = run[n:]
		added = added.plus(w)
		if len(run) == 0 || !wait && len(p.sealed) > maxSealed {
			break
		}
		if len(p.sealed) > maxSealed {
			if n > 0 {
				break // something went on; the rest waits in the next call
			}
			p.room.Wait()
			if p.producer.aborted() {
				p.mu.Unlock()
				p.producer.fail(run, ErrClosed)
				return nil
			}
		}
	}
	p.announce(added)
	p.mu.Unlock()
	return run
}

// add puts messages into the batch being built and seals it when it is full. It returns how
// many messages went in, and their weight. Called with mu held.
func (p *partitionProducer) add(run []*ProducerMessage) (n int, w weight) {
	if len(p.sealed) > maxSealed {
		return 0, weight{}
	}
	p.readClock(len(run))
	if p.building == nil {
		p.building = newBatch(p, p.next, p.now, p.producer.cfg.Producer.DeliveryTimeout)
	}
	b, cfg := p.building, &p.producer.cfg.Producer
	before := b.builder.Len()
	n = b.add(run, p.now.UnixMilli(), cfg.MaxMessageBytes, cfg.Flush.MaxMessages)
	p.next += int64(n)
	w = weight{messages: int64(n), bytes: int64(b.builder.Len() - before)}
	if n < len(run) || cfg.Flush.MaxMessages > 0 && len(b.msgs) >= cfg.Flush.MaxMessages {
		p.sealed = append(p.sealed, b)
		p.building = nil
	}
	return n, w
}

// readClock reads the time once for many messages, and for every new batch.
func (p *partitionProducer) readClock(n int) {
	p.sinceRead += n
	if p.building == nil || p.sinceRead >= clockEvery {
		p.now, p.sinceRead = time.Now(), 0
	}
}

// announce tells the leader's broker producer that there is more to send, or starts looking for
// the leader. Called with mu held.
func (p *partitionProducer) announce(added weight) {
	if p.broker == nil {
		p.resolveLater(nil)
		return
	}
	p.counted = p.counted.plus(added)
	p.broker.added(p, added, len(p.sealed) > 0)
}

// take gives the broker producer b the next batch to send, if there is one it may send now. more
// says that another waits behind it. until is when to come back for a batch in backoff, zero
// when completions or new messages will say.
//
// turn is the number of the request being collected, which holds at most one batch of this
// partition: a partition that left and came back may stand on the list twice.
func (p *partitionProducer) take(b *brokerProducer, turn int, who identity, now time.Time, room int) (t *batch, more bool, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broker != b || p.taken == turn {
		return nil, false, time.Time{}
	}
	if p.holds(who) {
		p.held, p.listed = true, false
		return nil, false, time.Time{}
	}
	if now.Before(p.notUntil) {
		return nil, true, p.notUntil
	}
	p.draining, p.held = false, false
	t = p.first()
	if t == nil {
		p.listed = false
		return nil, false, time.Time{}
	}
	if t.bytes() > room || who.known && !p.giveNumber(t, who) {
		return nil, true, time.Time{}
	}
	p.counted = p.counted.minus(t.weight())
	b.removed(t.weight())
	if t == p.building {
		p.building = nil
	} else {
		p.sealed = p.sealed[:copy(p.sealed, p.sealed[1:])]
	}
	p.taken = turn
	p.inFlight++
	p.room.Broadcast()
	p.listed = p.first() != nil
	return t, p.listed, time.Time{}
}

// first is the batch that goes next. Called with mu held.
func (p *partitionProducer) first() *batch {
	if len(p.sealed) > 0 {
		return p.sealed[0]
	}
	return p.building
}

// decided ends a batch that was in flight: its messages have their outcome. accepted says that
// the leader took it.
func (p *partitionProducer) decided(b *batch, accepted bool) {
	p.mu.Lock()
	p.inFlight--
	if accepted && b.sequence.identity == p.numbers.identity {
		p.numbers.proven = true
	}
	p.wakeHeld()
	p.mu.Unlock()
}

// wakeHeld lets the broker producer look again once nothing is in flight. Called with mu held.
func (p *partitionProducer) wakeHeld() {
	if p.inFlight == 0 && (p.draining || p.held) && p.broker != nil && p.first() != nil {
		p.held = false
		p.broker.retry(p)
	}
}

// again puts a batch that was in flight back in its place after err, for another try after the
// backoff, or fails it when it is out of tries or time.
func (p *partitionProducer) again(b *batch, err error, class wire.Class, now time.Time) {
	p.mu.Lock()
	p.inFlight--
	b.attempts++
	over := p.exhausted(b, now) || p.producer.aborted()
	if !over {
		b.outOfOrder = class.Has(wire.BumpEpoch)
		p.insert(b)
		p.draining = true
		p.notUntil = now.Add(p.producer.cfg.Producer.Retry.wait(b.attempts))
		p.producer.retries.Add(1)
	}
	if class.Has(wire.RefreshMetadata) {
		p.detach()
	}
	p.relist(err)
	p.mu.Unlock()
	if over {
		p.giveUp(b, err, now)
	}
}

// lost is called when the leader's broker cannot be reached: what waits here has had a try, and
// the leader is looked for anew.
func (p *partitionProducer) lost(b *brokerProducer, err error, now time.Time) {
	p.mu.Lock()
	if p.broker != b {
		p.mu.Unlock()
		return
	}
	late := p.tried(err, now)
	p.detach()
	p.relist(err)
	p.mu.Unlock()
	for _, t := range late {
		p.giveUp(t, err, now)
	}
}

// detach leaves the broker producer. Called with mu held.
func (p *partitionProducer) detach() {
	if p.broker == nil {
		return
	}
	p.broker.removed(p.counted)
	p.broker, p.counted, p.listed = nil, weight{}, false
}

// relist makes sure that somebody will come for what is to be sent. Called with mu held.
func (p *partitionProducer) relist(cause error) {
	switch {
	case p.first() == nil:
	case p.broker == nil:
		p.resolveLater(cause)
	default:
		p.wakeHeld()
	}
}

// insert puts a batch back in order. Called with mu held.
func (p *partitionProducer) insert(b *batch) {
	at := len(p.sealed)
	for at > 0 && p.sealed[at-1].ordinal > b.ordinal {
		at--
	}
	p.sealed = append(p.sealed, nil)
	copy(p.sealed[at+1:], p.sealed[at:])
	p.sealed[at] = b
	if p.broker != nil {
		p.counted = p.counted.plus(b.weight())
		p.broker.put(b.weight())
	}
}

func (p *partitionProducer) exhausted(b *batch, now time.Time) bool {
	return b.attempts > p.producer.cfg.Producer.Retry.Max || b.late(now)
}

func (b *batch) late(now time.Time) bool { return !b.deadline.IsZero() && !now.Before(b.deadline) }

// giveUp fails a batch for good.
func (p *partitionProducer) giveUp(b *batch, err error, now time.Time) {
	switch {
	case p.producer.aborted():
		err = fmt.Errorf("%w before the message was decided: %w", ErrClosed, err)
	case b.late(now):
		err = fmt.Errorf("%w (%v, %d attempts): %w", ErrDeliveryTimeout, p.producer.cfg.Producer.DeliveryTimeout, b.attempts, err)
	default:
		err = fmt.Errorf("%w (producer.retry.max, %d attempts): %w", ErrRetriesExhausted, b.attempts, err)
	}
	if b.mayBeWritten {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	p.producer.decide(b, Delivery{Err: err}, -1)
	b.free()
}

// resolveLater starts looking for the leader unless somebody does. Called with mu held.
func (p *partitionProducer) resolveLater(cause error) {
	if p.resolving {
		return
	}
	p.resolving = true
	p.producer.stages.Add(1)
	// Owned by the partition; ends when the leader is known, when nothing is left to send, or
	// when the producer is aborted; the producer's Close waits.
	go p.resolve(cause)
}

// resolve looks for the leader until it is known, failing what runs out of time or tries.
func (p *partitionProducer) resolve(cause error) {
	defer p.producer.stages.Done()
	ctx := p.producer.life
	for attempt := 0; ; attempt++ {
		b, err := p.lookUp(ctx, attempt > 0 || cause != nil)
		if err == nil {
			p.attach(b)
			return
		}
		cause = err
		if p.expire(err) {
			return
		}
		_ = p.producer.client.sleep(ctx, p.producer.cfg.Producer.Retry.wait(attempt+1)) // expire looks at why
	}
}

// lookUp is the leader's broker producer, after a refresh if one is asked for.
func (p *partitionProducer) lookUp(ctx context.Context, refresh bool) (*brokerProducer, error) {
	c := p.producer.client
	if refresh {
		if err := c.RefreshMetadata(ctx, p.topic); err != nil {
			return nil, err
		}
	}
	t := c.meta.Load().topics[p.topic]
	if t == nil || int(p.number) >= len(t.partitions) {
		return nil, topicError(p.topic, t)
	}
	at := t.partitions[p.number]
	if c.node(at.leader) == nil {
		return nil, leaderless(p.topic, p.number, at.err)
	}
	return p.producer.brokerFor(at.leader), nil
}

// attach gives the partition to the broker producer of its leader.
func (p *partitionProducer) attach(b *brokerProducer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolving = false
	if p.producer.aborted() {
		p.mu.Unlock()
		p.failAll(ErrClosed)
		p.mu.Lock()
		return
	}
	p.broker, p.listed, p.taken, p.numbers.proven = b, false, 0, false
	if p.counted = p.waiting(); p.counted.messages > 0 {
		b.added(p, p.counted, len(p.sealed) > 0)
	}
}

// waiting weighs what is to be sent. Called with mu held.
func (p *partitionProducer) waiting() (w weight) {
	for _, b := range p.sealed {
		w = w.plus(b.weight())
	}
	if p.building != nil {
		w = w.plus(p.building.weight())
	}
	return w
}

// expire fails the batches that are out of time or tries after another look for the leader
// failed, and says whether the search is over: nothing is left, or the producer is aborted.
func (p *partitionProducer) expire(err error) (over bool) {
	if p.producer.aborted() {
		p.mu.Lock()
		p.resolving = false
		p.mu.Unlock()
		p.failAll(err)
		return true
	}
	now := time.Now()
	p.mu.Lock()
	late := p.tried(err, now)
	if over = p.first() == nil; over {
		p.resolving = false
	}
	p.mu.Unlock()
	for _, b := range late {
		p.giveUp(b, err, now)
	}
	return over
}

// tried counts a try for everything that waits and takes out what is out of tries or time, or
// all of it after an error that no other try will mend. Called with mu held, and a broker
// producer attached or not.
func (p *partitionProducer) tried(err error, now time.Time) (late []*batch) {
	fatal := wire.Classify(err).Has(wire.Fatal)
	out := func(b *batch) bool { b.attempts++; return fatal || p.exhausted(b, now) }
	p.sealed, late = split(p.sealed, out)
	if b := p.building; b != nil && out(b) {
		late = append(late, b)
		p.building = nil
	}
	p.room.Broadcast()
	return late
}

// split moves out of bs what takes says.
func split(bs []*batch, takes func(*batch) bool) (kept, taken []*batch) {
	kept = bs[:0]
	for _, b := range bs {
		if takes(b) {
			taken = append(taken, b)
		} else {
			kept = append(kept, b)
		}
	}
	return kept, taken
}

// failAll fails everything that waits here.
func (p *partitionProducer) failAll(err error) {
	p.mu.Lock()
	all := p.sealed
	if p.building != nil {
		all = append(all, p.building)
	}
	p.sealed, p.building = nil, nil
	p.room.Broadcast()
	p.mu.Unlock()
	for _, b := range all {
		p.giveUp(b, err, time.Time{})
	}
}

// halve puts two batches in the place of one that was refused for its size (KIP-126), so that in
// the end only a message that is too large by itself fails.
func (p *partitionProducer) halve(b *batch) {
	half := len(b.msgs) / 2
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	for i, msgs := range [][]*ProducerMessage{b.msgs[:half], b.msgs[half:]} {
		n := newBatch(p, b.ordinal+int64(i*half), b.firstAt, 0)
		n.deadline, n.attempts = b.deadline, b.attempts
		if n.sequence = b.sequence; n.sequence.set {
			n.sequence.base = sequenceAfter(b.sequence.base, i*half)
		}
		n.add(msgs, b.firstAt.UnixMilli(), 1<<31-1, 0)
		p.insert(n)
	}
	p.draining = true
	b.free()
	p.relist(nil)
}
