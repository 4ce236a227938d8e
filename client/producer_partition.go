package client

import (
	"sync"
	"time"
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
