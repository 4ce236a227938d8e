package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/record"
)

// partitionProducer is the third stage: it encodes the messages of one partition into batches,
// keeps them in order through retries, and finds the partition's leader. Its batches wait here
// until the leader's broker producer takes them, so that they move with the partition when the
// leader does. There may be very many, most of them idle: what only some need is made when they do.
type partitionProducer struct {
	producer *AsyncProducer
	topic    string
	number   int32
	listed   atomic.Bool // in the broker producer's list of partitions to look at; written with mu held
	size     *sizeLimit  // of the topic
	stage    stage

	mu   sync.Mutex
	room *sync.Cond // made by who waits; signalled when a batch was taken or decided, and on abort

	remembered bool // by the producer, whose mu guards it
	resolving  bool // a goroutine looks for the leader
	held       bool // take found something that could not leave yet; see holds
	// draining is set when a batch is to be sent again: nothing of this partition leaves until
	// everything in flight has come back, so that batches leave in order again.
	draining  bool
	sinceRead int32     // messages since
	now       time.Time // was read

	broker  *brokerProducer // the leader's; nil while it is not known
	counted weight          // of what waits here, as broker counts it
	taken   int             // the broker producer's turn in which a batch was last taken

	building *batch   // not sealed; nil when nothing waits
	sealed   []*batch // full ones and those to send again, by ordinal
	next     int64    // messages so far: the ordinal of the next batch
	inFlight int
	on       *conn.Conn // which the last batch left on
	flying   []*batch   // those in flight
	trouble  *trouble   // made when there is some
	numbers  numbering
	round    int // of the last transaction that the partition was added to
}

// maxSealed is how many full batches wait beside the one being built, before the stage's queue
// has to hold what comes.
const maxSealed = 1

func newPartitionProducer(t *topicProducer, number int32) *partitionProducer {
	p := t.producer
	pp := &partitionProducer{producer: p, topic: t.topic, number: number, size: t.size}
	pp.stage.init(p.cfg.ChannelBufferSize, &p.stages, pp)
	// Those triggers count every message as it comes, and what is gathered is to be of one batch.
	if f := &p.cfg.Producer.Flush; f.Messages == 0 && f.Bytes == 0 && (f.MaxMessages == 0 || f.MaxMessages >= gathered) {
		pp.stage.gather = min(pp.stage.bound, gathered)
	}
	return pp
}

// trouble is what a partition needs only when something fails, which most never do.
type trouble struct {
	circuit circuit       // of looking for the leader
	tripped chan struct{} // made by who waits for the circuit to open, closed and dropped when it does
	cause   error         // of the last failure, until something succeeds
	// notUntil is the end of the backoff.
	notUntil time.Time
}

// inTrouble is the partition's trouble. Called with mu held.
func (p *partitionProducer) inTrouble() *trouble {
	if p.trouble == nil {
		p.trouble = new(trouble)
	}
	return p.trouble
}

// waitForRoom waits until makeRoom is called. Called with mu held, which it gives up meanwhile.
func (p *partitionProducer) waitForRoom() {
	if p.room == nil {
		p.room = sync.NewCond(&p.mu)
	}
	p.room.Wait()
}

// makeRoom wakes who waits for room. Called with mu held.
func (p *partitionProducer) makeRoom() {
	if p.room != nil {
		p.room.Broadcast()
	}
}

// gathered is how many messages of a partition may wait to be encoded together. They wait only
// while there is something before them to be sent.
const gathered = 64

// fetched says that the broker producer is going to look at the partition, whatever comes: it
// fetches what was gathered before it takes a batch. See stage.
func (p *partitionProducer) fetched() bool { return p.listed.Load() && !p.producer.over.Load() }

// gathers notes the time of the first message of those that are gathered, which is the oldest of its
// batch: their time is that one's.
func (p *partitionProducer) gathers(first *ProducerMessage) {
	if p.producer.cfg.Producer.DeliveryTimeout > 0 {
		now := time.Now()
		first.accepted = momentOf(now)
		p.producer.deadline(first, now)
	}
}

// handle encodes a run into batches; see stage.
func (p *partitionProducer) handle(run []*ProducerMessage, wait bool) (left []*ProducerMessage) {
	p.mu.Lock()
	left, bad, err := p.encode(run, wait)
	p.mu.Unlock()
	if err != nil {
		p.producer.fail(bad, err)
	}
	return left
}

// encode is handle up to the first message that fails; what is bad has no outcome yet. Called
// with mu held.
func (p *partitionProducer) encode(run []*ProducerMessage, wait bool) (left, bad []*ProducerMessage, err error) {
	var added weight
	defer func() {
		if v := recover(); v != nil {
			left, bad, err = nil, run, p.producer.caught("the partition producer", v)
		}
	}()
	for len(run) > 0 {
		if err := p.producer.halting(); err != nil {
			return nil, run, err
		}
		n, w, panicked := p.add(run)
		run, added = run[n:], added.plus(w)
		if panicked != nil {
			bad, run = run[:1], run[1:]
			err = p.producer.caught("encoding the message", panicked)
			break
		}
		if len(run) == 0 || len(p.sealed) > maxSealed && (!wait || n > 0) {
			break // all of it, or as much as could go on
		}
		if len(p.sealed) > maxSealed {
			p.stage.waiting(run)
			p.waitForRoom()
			p.stage.goesOn()
		}
	}
	p.announce(added)
	return run, bad, err
}

// add puts messages into the batch being built and seals it when it is full. It returns how
// many messages went in, and their weight; see batch.add. Called with mu held.
func (p *partitionProducer) add(run []*ProducerMessage) (n int, w weight, panicked any) {
	if len(p.sealed) > maxSealed {
		return 0, weight{}, nil
	}
	p.readClock(len(run))
	if p.building == nil {
		p.building = newBatch(p, p.next, p.now, 0)
		p.building.deadline = p.producer.deadline(run[0], p.now)
	}
	b, cfg := p.building, &p.producer.cfg.Producer
	before := b.builder.Len()
	limit, _ := p.size.batchLimit(cfg)
	n, panicked = b.add(run, p.now.UnixMilli(), limit, cfg.Flush.MaxMessages)
	if cfg.Compression == record.None && !b.deferred.on {
		b.builder.Sum(summedAtOnce)
	}
	p.next += int64(n)
	w = weight{messages: int64(n), bytes: int64(b.builder.Len() - before)}
	switch {
	case len(b.msgs) == 0: // its first message cannot be encoded
		p.building = nil
		b.free()
	case n < len(run) && panicked == nil || cfg.Flush.MaxMessages > 0 && len(b.msgs) >= cfg.Flush.MaxMessages:
		p.sealed = append(p.sealed, b)
		p.building = nil
	}
	return n, w, panicked
}

// summedAtOnce is how many bytes of records are taken into a batch's checksum together: enough for
// the joining of the pieces not to matter, and few enough to be in the processor's cache still.
const summedAtOnce = 32 << 10

// readClock reads the time once for many messages, and for every new batch.
func (p *partitionProducer) readClock(n int) {
	p.sinceRead += int32(n)
	if p.building == nil || p.sinceRead >= clockEvery {
		p.now, p.sinceRead = time.Now(), 0
	}
}

// announce tells the leader's broker producer that there is more to send, or starts looking for
// the leader. Called with mu held.
func (p *partitionProducer) announce(added weight) {
	if p.broker == nil {
		p.findLeader()
		return
	}
	p.counted = p.counted.plus(added)
	p.broker.added(p, added, len(p.sealed) > 0)
}
