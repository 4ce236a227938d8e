package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/produce"
	"github.com/kbench/kbench/client/internal/wire"
)

const produceKey = produce.Key

// RequestInfo describes one finished Produce request; see ProducerConfig.OnRequest.
type RequestInfo struct {
	Broker   int32 // node id
	Err      error // why there is no answer; errors of single batches are not counted here
	Written  time.Time
	Read     time.Time // zero without an answer
	Batches  int
	Messages int
	Bytes    int           // of the batches as sent
	RawBytes int           // of the batches before compression
	Throttle time.Duration // asked for by the broker
}

// exchange is one Produce request on the wire, from its first byte to what the answer says of each
// batch, whichever form of the producer makes it. It is used again and again.
type exchange struct {
	cfg     *Config
	panics  *atomic.Int64 // of the user's functions
	conn    *conn.Conn
	call    conn.Call
	encoder produce.Encoder
	answer  produce.Answer
	// outcomes are what the answer says of partitions; they alias it. collect adds one.
	outcomes []produce.Outcome
	collect  func(*produce.Outcome)
	times    conn.Times
	info     RequestInfo
	sizes    Summary // of the batches
	topic    string  // of the batch added last
}

// init is called once; done gets the answer, or the failure.
func (e *exchange) init(cfg *Config, panics *atomic.Int64, done func([]byte, conn.Times, error)) {
	e.cfg, e.panics, e.call.Done = cfg, panics, done
	e.collect = func(o *produce.Outcome) { e.outcomes = append(e.outcomes, *o) }
}

// begin starts a request to a node.
func (e *exchange) begin(node int32, c *conn.Conn, version int16) {
	e.conn, e.topic, e.times = c, "", conn.Times{}
	e.info, e.sizes = RequestInfo{Broker: node}, Summary{}
	e.call.Key, e.call.Version = produceKey, version
	e.encoder.Begin(produce.Head{
		Version: version, TransactionalID: e.cfg.Producer.Transaction.id(), Acks: int16(e.cfg.Producer.RequiredAcks), TimeoutMs: int32(e.cfg.Producer.Timeout.Milliseconds()),
	})
}

// add puts in a batch that was finished to data, which must stay as it is until the request is
// written. The batches of a topic are added one after the other.
func (e *exchange) add(topic string, partition int32, b *batch, data []byte) {
	if e.info.Batches == 0 || topic != e.topic {
		e.topic = topic
		e.encoder.Topic(topic)
	}
	e.encoder.Batch(partition, data)
	e.info.Batches++
	e.info.Messages += b.builder.Count() // msgs may be gone already: see batch.expired
	e.info.Bytes += len(data)
	e.info.RawBytes += b.raw
	e.sizes.add(int64(len(data)))
}

// submit writes the request; the answer comes to done, unless there is an error. A slot of the
// connection was acquired, unless no answer is asked for.
func (e *exchange) submit() error {
	e.call.Body = e.encoder.End()
	e.call.NoResponse = e.cfg.Producer.RequiredAcks == AcksNone
	e.call.Timeout = e.cfg.Producer.Timeout + e.cfg.Net.answerTimeout()
	return e.conn.Submit(&e.call)
}

// forget lets go of the batches of a request that is over.
func (e *exchange) forget() {
	e.call.Body = nil
	e.encoder.Forget()
}

// read takes an answer apart into outcomes, and obeys its throttle time.
func (e *exchange) read(body []byte) error {
	e.outcomes = e.outcomes[:0]
	throttle, err := e.answer.Read(body, e.call.Version, e.collect)
	if err == nil && len(e.outcomes) < e.info.Batches {
		err = errors.New("the broker's answer leaves out a partition of the request")
	}
	if err != nil {
		return e.unreadable(err)
	}
	e.info.Throttle = throttle
	e.conn.Throttle(throttle)
	return nil
}

func (e *exchange) unreadable(err error) error {
	return &conn.DecodeError{Key: produceKey, Version: e.call.Version, Err: err}
}

// strange is the error of batches that the answer does not tell about.
func (e *exchange) strange() error {
	return e.unreadable(errors.New("the broker's answer is about partitions that were not asked about"))
}

// report tells who asked to be told that the request is over.
func (e *exchange) report(err error) {
	if m, measured := e.conn.Observer().(*brokerMetrics); measured && !e.times.Written.IsZero() {
		m.wrote(&e.info, e.sizes)
	}
	if e.cfg.Producer.OnRequest != nil {
		e.info.Err, e.info.Written, e.info.Read = err, e.times.Written, e.times.Read
		e.callHook()
	}
}

// callHook calls the user's function, whose panics stay here: the answer counts all the same.
func (e *exchange) callHook() {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		if v := recover(); v != nil {
			_ = caught(e.cfg, e.panics, "producer.onRequest", v)
		}
	}()
	e.cfg.Producer.OnRequest(e.info)
}

// reportDropped tells of a connection that a broker has closed on which nothing is answered: what
// was written to it last, and counts as sent, may not be in the log.
func reportDropped(cfg *Config, panics, dropped *atomic.Int64, node int32, c *conn.Conn) {
	dropped.Add(1)
	err := fmt.Errorf("%w: %w", ErrDropped, c.Err())
	if cfg.Logger != nil {
		cfg.Logger.Error("what was sent last with acks=0 may be lost", "broker", node, "error", err)
	}
	e := exchange{cfg: cfg, panics: panics, conn: c, info: RequestInfo{Broker: node}}
	e.report(err)
}

// refusal says what an outcome that is none of success means, and what may be done about it.
func refusal(topic string, o *produce.Outcome) (wire.Class, error) {
	var text *string
	if len(o.Message) > 0 {
		s := string(o.Message)
		text = &s
	}
	err := wire.ErrorWith(o.Code, text)
	return wire.Classify(err), fmt.Errorf("topic %q partition %d: %w", topic, o.Partition, err)
}

// tooLargeTogether says that smaller batches of the same messages may be taken.
func (b *batch) tooLargeTogether(err error) bool {
	return b.builder.Count() > 1 && isTooLarge(err)
}

// produceConn is a node's connection and the Produce version to use on it.
func (c *Client) produceConn(ctx context.Context, node int32) (*conn.Conn, int16, error) {
	n := c.node(node)
	if n == nil {
		return nil, 0, &nodeGoneError{id: node}
	}
	nc, err := n.connection(ctx)
	if err != nil {
		return nil, 0, err
	}
	v, err := nc.Version(produceKey)
	if err == nil {
		err = codecFits(c.cfg.Producer.Compression, v)
	}
	if err != nil {
		return nil, 0, &addressError{n.addr, err}
	}
	return nc, v, nil
}

// gaveUp is the error of a batch that is not tried any more after err.
func (b *batch) gaveUp(cfg *Config, closed bool, err error, now time.Time) error {
	switch {
	case closed:
		err = fmt.Errorf("%w before the message was decided: %w", ErrClosed, err)
	case b.late(now):
		err = fmt.Errorf("%w (%v, %d attempts): %w", ErrDeliveryTimeout, cfg.Producer.DeliveryTimeout, b.attempts, err)
	case wire.Classify(err).Has(wire.Fatal): // no other try would help
	default:
		err = fmt.Errorf("%w (producer.retry.max, %d attempts): %w", ErrRetriesExhausted, b.attempts, err)
	}
	return b.orUnknown(err)
}

// orUnknown is err, marked when the batch may be in the log all the same.
func (b *batch) orUnknown(err error) error {
	if b.mayBeWritten {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}
