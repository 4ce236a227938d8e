package client

import (
	"time"

	"github.com/kbench/kbench/client/record"
)

// Header is one record header. A nil Value is null, which is distinct from an empty one.
type Header = record.Header

// ProducerMessage is one message to send. The producer reads it until its outcome has been
// delivered; until then it must not be changed, and afterwards it may be used again.
//
// On 64-bit machines the fields lie in three cache lines: what is sent, what goes with it, and what
// the outcome is about (a message's time, to know how long it took, among it), so that delivering an
// outcome touches one of them.
type ProducerMessage struct {
	// Topic is where the message goes.
	Topic string
	// Key and Value are the bytes sent; nil is null, which is distinct from empty. They are
	// read some time between the call and the outcome, and again when they are sent again.
	Key, Value []byte

	Headers []Header
	// Metadata belongs to the caller and is not sent.
	Metadata any
	one      [1]*ProducerMessage // a run of this message alone, without an allocation
	waited   int64               // see Waited; nanoseconds since origin, 0: it did not wait
	_        [8]byte

	// Partition is read by the manual partitioner, and written with the outcome: the partition
	// the message was sent to, −1 when it never got one.
	Partition int32
	size      uint32 // what it holds of the producer's bound in bytes
	// Offset is written with the outcome: the offset in the partition, −1 where the broker does
	// not tell (acks=0, failures, some duplicates).
	Offset int64
	// Timestamp is the time of the message, to the millisecond. The zero value means the time
	// the message reached its batch, read once for a run of messages.
	Timestamp time.Time
	// Where the outcome goes; set by the entry points.
	sink     deliveries
	way      way
	placed   bool   // Partition is decided
	accepted moment // when, if it had to wait for its batch; else 0
}

// way is how a message's outcome finds its user, and in the lowest bit the message's epoch (see
// accounts).
type way uint8

const (
	toChannels   way = 0
	toCallback   way = 2 // sink is a callback
	toDeliveries way = 4
)

func (w way) epoch() uint8 { return uint8(w & 1) }
func (w way) kind() way    { return w &^ 1 }

// origin is what short instants are counted from.
var origin = time.Now()

// moment is an instant in milliseconds since origin, modulo 49 days, never 0.
type moment uint32

func momentOf(t time.Time) moment { return max(moment(t.Sub(origin).Milliseconds()), 1) }

// time is the instant, which must lie within 24 days of now.
func (m moment) time(now time.Time) time.Time {
	return now.Add(-time.Duration(int32(momentOf(now)-m)) * time.Millisecond)
}

// noteAcceptance says when messages were accepted that do not know yet: now.
func noteAcceptance(run []*ProducerMessage) {
	now := momentOf(time.Now())
	for _, m := range run {
		if m.accepted == 0 {
			m.accepted = now
		}
	}
}

// Waited is when there was room for the message, if it had to wait for the producer's bounds when
// it was handed over, else zero. It carries a monotonic reading. Ask once the outcome is there.
func (m *ProducerMessage) Waited() time.Time {
	if m.waited == 0 {
		return time.Time{}
	}
	return origin.Add(time.Duration(m.waited))
}

// payloadBytes is what a message counts against the bound in bytes.
func (m *ProducerMessage) payloadBytes() int {
	n := len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += len(m.Headers[i].Key) + len(m.Headers[i].Value)
	}
	return n
}

// Delivery says what became of a run of messages that were decided together.
type Delivery struct {
	// Err is nil when the messages were acknowledged (with acks=0: written).
	Err error
	// Written is when the request that decided them left, zero when none did; Acked is when its
	// answer was read, with acks=0 the same as Written. Both carry a monotonic reading.
	Written, Acked time.Time
}

// Deliveries takes the outcomes of messages handed over by ProduceRun, in runs: consecutive
// messages of one batch. It is called from the client's own goroutines, concurrently for
// different partitions, with no lock held; it may produce again but must not block, and the
// slice is not its to keep. Partition and Offset of every message are filled in.
type Deliveries interface {
	Delivered(batch []*ProducerMessage, d Delivery)
}

// deliveries is Deliveries; unexported so that the field in ProducerMessage stays our own.
type deliveries = Deliveries

// callback is the function given to Produce, as the destination of one message.
type callback func(*ProducerMessage, error)

// Delivered is never called: who hands over knows callbacks, and calls the function.
func (callback) Delivered([]*ProducerMessage, Delivery) {}

// ProducerInterceptor sees every message before it is partitioned and may change it.
// Interceptors run in the goroutine that hands the message over. A panic in one is contained:
// the message goes on as it is and the panic is counted.
type ProducerInterceptor interface {
	OnSend(*ProducerMessage)
}
