// How large a message and a batch may be: Producer.MaxMessageBytes, and the topic's own
// max.message.bytes once a broker has refused something for its size.

package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

const (
	ownLimit   = "producer.maxMessageBytes"
	topicLimit = "max.message.bytes of the topic"
	// limitAge is how long a topic's limit is believed: it can be raised at any time.
	limitAge = time.Minute
)

// sizeLimit is what is known of one topic's max.message.bytes. Nothing is until a broker refuses a
// batch for its size: then one request asks, and a message that is too large by itself waits for
// the answer, so that its error can name both sizes.
type sizeLimit struct {
	producer *AsyncProducer
	topic    string

	bytes atomic.Int64 // 0: not known
	until atomic.Int64 // how long the answer is believed, nanoseconds since origin

	mu      sync.Mutex
	asking  bool
	asked   bool       // at least once; an answer that does not tell counts as long as others
	refused []largeOne // by the broker, each waiting for the answer
}

// largeOne is a batch of one message that a broker found too large.
type largeOne struct {
	b *batch
	d Delivery
}

// now is the topic's limit, 0 when it is not known.
func (l *sizeLimit) now() int {
	n := l.bytes.Load()
	if n == 0 {
		return 0
	}
	if int64(time.Since(origin)) > l.until.Load() {
		l.bytes.Store(0)
		return 0
	}
	return int(n)
}

// ask finds the limit out, unless it is known or being found out.
func (l *sizeLimit) ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.askLocked()
}

func (l *sizeLimit) askLocked() {
	if l.asking || l.producer.aborted() || l.asked && int64(time.Since(origin)) <= l.until.Load() {
		return
	}
	l.asking, l.asked = true, true
	l.producer.stages.started()
	// Owned by the producer; bounded by Admin.Timeout and the producer's life; Close waits.
	go l.find()
}

func (l *sizeLimit) find() {
	defer l.producer.stages.ended()
	n, err := l.producer.client.maxMessageBytes(l.producer.life, l.topic)
	if log := l.producer.cfg.Logger; err != nil && log != nil && !l.producer.aborted() {
		log.Warn("a topic's max.message.bytes could not be found out", "topic", l.topic, "error", err)
	}
	l.until.Store(int64(time.Since(origin) + limitAge))
	l.bytes.Store(int64(n))
	l.mu.Lock()
	l.asking = false
	refused := l.refused
	l.refused = nil
	l.mu.Unlock()
	for _, r := range refused {
		l.fail(r, n)
	}
}

// tooLarge fails a batch of one message that is not in flight any more, once the limit is known.
func (l *sizeLimit) tooLarge(b *batch, d Delivery) {
	l.mu.Lock()
	l.askLocked()
	if l.asking {
		l.refused = append(l.refused, largeOne{b, d})
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.fail(largeOne{b, d}, l.now())
}

func (l *sizeLimit) fail(r largeOne, limit int) {
	if limit >= len(r.b.data) {
		limit = 0 // another limit of the broker's
	}
	r.d.Err = &MessageTooLargeError{Size: len(r.b.data), Limit: limit, Whose: topicLimit, Err: r.d.Err}
	l.producer.decide(r.b, r.d, -1)
	r.b.free()
}

// maxMessageBytes asks for the topic's limit; brokers tell who may describe the topic's settings.
func (c *Client) maxMessageBytes(ctx context.Context, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	b, err := c.anyBroker()
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{"max.message.bytes"}
	req.Resources = append(req.Resources, r)
	resp, err := b.Request(ctx, req)
	if err != nil {
		return 0, err
	}
	for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		if err := wire.ErrorWith(r.ErrorCode, r.ErrorMessage); err != nil {
			return 0, err
		}
		for _, s := range r.Configs {
			if s.Name == "max.message.bytes" && s.Value != nil {
				n, err := strconv.Atoi(*s.Value)
				if err != nil || n < 0 {
					return 0, fmt.Errorf("the broker says max.message.bytes=%.20q", *s.Value)
				}
				return n, nil
			}
		}
	}
	return 0, errors.New("the broker does not tell")
}

// compressedCheck says that Producer.MaxMessageBytes is held against what compression makes of a
// message (and with it every message alone is as large as it likes before).
func (c *ProducerConfig) compressedCheck() bool {
	return c.CheckCompressedSize && c.Compression != record.None
}

// batchLimit is the largest batch before compression.
func (p *AsyncProducer) batchLimit(topic *sizeLimit) (limit int, whose string) {
	limit, whose = p.cfg.Producer.MaxMessageBytes, ownLimit
	if p.cfg.Producer.Compression == record.None { // else only the result tells
		if n := topic.now(); n > 0 && n < limit {
			limit, whose = n, topicLimit
		}
	}
	return limit, whose
}

// checkSize is nil for a message that is not too large as far as can be said before it is encoded.
func (p *AsyncProducer) checkSize(m *ProducerMessage, topic *sizeLimit) error {
	limit, whose := p.batchLimit(topic)
	if p.cfg.Producer.compressedCheck() || fitsAlone(m, limit) {
		return nil
	}
	large := &MessageTooLargeError{Size: batchSize(m), Limit: limit, Whose: whose}
	if whose == topicLimit {
		large.Err = wire.ErrMessageTooLarge
	}
	return large
}

// checkCompressed is checkFinished for our own limit alone.
func (b *batch) checkCompressed(cfg *ProducerConfig) error {
	if cfg.compressedCheck() && len(b.data) > cfg.MaxMessageBytes {
		return &MessageTooLargeError{Size: len(b.data), Limit: cfg.MaxMessageBytes, Whose: ownLimit + ", compressed"}
	}
	return nil
}

// checkFinished is nil for a batch that is not too large as it is to be sent.
func (b *batch) checkFinished(cfg *ProducerConfig) error {
	if err := b.checkCompressed(cfg); err != nil {
		return err
	}
	if n := b.p.size.now(); n > 0 && len(b.data) > n {
		return &MessageTooLargeError{Size: len(b.data), Limit: n, Whose: topicLimit, Err: wire.ErrMessageTooLarge}
	}
	return nil
}
