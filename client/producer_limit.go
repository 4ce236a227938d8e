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
	client *Client
	topic  string
	life   context.Context // the producer's
	tasks  tasks           // the producer's

	bytes atomic.Int64 // 0: not known
	until atomic.Int64 // how long the answer is believed, nanoseconds since origin

	mu      sync.Mutex
	asking  bool
	asked   bool              // at least once; an answer that does not tell counts as long as others
	waiting []func(limit int) // for the answer; 0: it does not tell
}

// tasks counts the goroutines that a producer's Close waits for.
type tasks interface {
	started()
	ended()
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
	if l.asking || l.life.Err() != nil || l.asked && int64(time.Since(origin)) <= l.until.Load() {
		return
	}
	l.asking, l.asked = true, true
	l.tasks.started()
	// Owned by the producer; bounded by Admin.Timeout and the producer's life; Close waits.
	go l.find()
}

func (l *sizeLimit) find() {
	defer l.tasks.ended()
	n, err := l.client.maxMessageBytes(l.life, l.topic)
	if log := l.client.cfg.Logger; err != nil && log != nil && l.life.Err() == nil {
		log.Warn("a topic's max.message.bytes could not be found out", "topic", l.topic, "error", err)
	}
	l.until.Store(int64(time.Since(origin) + limitAge))
	l.bytes.Store(int64(n))
	l.mu.Lock()
	l.asking = false
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, tell := range waiting {
		tell(n)
	}
}

// then calls tell with the limit once it is known, here or on a goroutine of the producer's.
func (l *sizeLimit) then(tell func(limit int)) {
	l.mu.Lock()
	l.askLocked()
	if l.asking {
		l.waiting = append(l.waiting, tell)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	tell(l.now())
}

// tooLarge fails a batch of one message that a broker found too large, once the limit is known.
func (p *AsyncProducer) tooLarge(b *batch, d Delivery) {
	b.p.size.then(func(limit int) {
		d.Err = b.largeForBroker(limit, d.Err)
		p.decide(b, d, -1)
		b.free()
	})
}

// largeForBroker is the error of one message that is too large for a broker, whose topic's limit is
// limit, 0 when it is not known.
func (b *batch) largeForBroker(limit int, err error) error {
	if limit >= b.length {
		limit = 0 // another limit of the broker's
	}
	return &MessageTooLargeError{Size: b.length, Limit: limit, Whose: topicLimit, Err: err}
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
func (l *sizeLimit) batchLimit(cfg *ProducerConfig) (limit int, whose string) {
	limit, whose = cfg.MaxMessageBytes, ownLimit
	if cfg.Compression == record.None { // else only the result tells
		if n := l.now(); n > 0 && n < limit {
			limit, whose = n, topicLimit
		}
	}
	return limit, whose
}

// check is nil for a message that is not too large as far as can be said before it is encoded.
func (l *sizeLimit) check(cfg *ProducerConfig, m *ProducerMessage) error {
	limit, whose := l.batchLimit(cfg)
	if cfg.compressedCheck() || fitsAlone(m, limit) {
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
	if cfg.compressedCheck() && b.length > cfg.MaxMessageBytes {
		return &MessageTooLargeError{Size: b.length, Limit: cfg.MaxMessageBytes, Whose: ownLimit + ", compressed"}
	}
	return nil
}

// checkFinished is nil for a batch to the topic of l that is not too large as it is to be sent.
func (b *batch) checkFinished(cfg *ProducerConfig, l *sizeLimit) error {
	if err := b.checkCompressed(cfg); err != nil {
		return err
	}
	if n := l.now(); n > 0 && b.length > n {
		return &MessageTooLargeError{Size: b.length, Limit: n, Whose: topicLimit, Err: wire.ErrMessageTooLarge}
	}
	return nil
}
