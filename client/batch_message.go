package client

import (
	"fmt"
	"math"
	"time"
)

// BatchMessage is one message for a BatchProducer. It must not be changed, nor sent a second time,
// before it has its outcome; afterwards it may be used again.
type BatchMessage struct {
	// Topic is where the message goes.
	Topic string
	// Key and Value are of any type that the producer's encoders take; nil is null with the
	// default one.
	Key, Value any
	Headers    []Header
	// Timestamp is the time of the message, to the millisecond; the zero value means the time it
	// reached its batch.
	Timestamp time.Time
	// Metadata belongs to the caller and is not sent.
	Metadata any

	// Partition is read by the manual partitioner, and written with the outcome: the partition
	// the message was sent to, −1 when it never got one.
	Partition int32
	// Offset is written with the outcome: the offset in the partition, −1 where the broker does
	// not tell.
	Offset int64
	// Err is written with the outcome: nil when the message was acknowledged.
	Err error

	encoded  ProducerMessage // what is sent; belongs to the producer until the outcome
	accepted int64           // when, in nanoseconds since origin
	epoch    uint8           // in the producer's books
}

// Waited is when there was room for the message in the queue of the asynchronous mode, if it had to
// wait for the producer's bounds, else zero. Ask once the outcome is there.
func (m *BatchMessage) Waited() time.Time { return m.encoded.Waited() }

// BatchDeliveries takes the outcomes of a BatchProducer's messages, in runs: consecutive messages
// of one batch, or a message that never came into one. Partition, Offset and Err of every message
// are filled in. In the synchronous mode it is called by the goroutine that sends, before Send
// returns; in the asynchronous one by a goroutine of the producer's, which sends nothing more while
// it blocks. The slice is not its to keep.
type BatchDeliveries interface {
	DeliveredBatch(run []*BatchMessage, d Delivery)
}

// BatchError says which messages of a Send failed, each with its reason in Err.
type BatchError struct {
	Failed []*BatchMessage // in the order they were given
	Of     int             // messages given
}

func (e *BatchError) Error() string {
	first := "none"
	if len(e.Failed) > 0 && e.Failed[0].Err != nil {
		first = e.Failed[0].Err.Error()
	}
	return fmt.Sprintf("%d of %d messages failed; the first: %s", len(e.Failed), e.Of, first)
}

// Unwrap gives each message's failure.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, m := range e.Failed {
		errs[i] = m.Err
	}
	return errs
}

// encode makes what is sent of the message, for its first try; interceptors see it.
func (p *BatchProducer) encode(m *BatchMessage) (err error) {
	w := &m.encoded
	*w = ProducerMessage{
		Topic: m.Topic, Headers: m.Headers, Timestamp: m.Timestamp, Partition: m.Partition, Metadata: m.Metadata,
	}
	if w.Key, err = p.bytes("key", p.keys, m.Topic, m.Key); err != nil {
		return err
	}
	if w.Value, err = p.bytes("value", p.values, m.Topic, m.Value); err != nil {
		return err
	}
	intercept(&p.cfg, &p.panics, w)
	w.size = uint32(min(w.payloadBytes(), math.MaxUint32))
	if limit := p.cfg.Producer.MaxMessageBytes; !p.cfg.Producer.compressedCheck() && !fitsAlone(w, limit) {
		return tooLarge(w, limit)
	}
	return nil
}

// bytes calls an encoder, whose panics stay here.
func (p *BatchProducer) bytes(field string, by Encoder, topic string, v any) (b []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			b, err = nil, &EncodeError{Topic: topic, Field: field, Err: caught(&p.cfg, &p.panics, "the encoder", v)}
		}
	}()
	if b, err = by.Encode(topic, v); err != nil {
		return nil, &EncodeError{Topic: topic, Field: field, Err: err}
	}
	return b, nil
}
