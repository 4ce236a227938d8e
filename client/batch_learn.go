// How a BatchProducer gets to know topics.

package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// prepare serialises messages and looks up topics nothing is known of. What cannot be sent has its
// reason in Err. now is noted as when they were accepted.
func (p *BatchProducer) prepare(ctx context.Context, msgs []*BatchMessage, epoch uint8) {
	now := sinceOrigin()
	for _, m := range msgs {
		m.Err = p.encode(m)
		m.epoch, m.accepted = epoch, now
	}
	p.learn(ctx, msgs)
}

// learn looks up the topics of messages that nothing is known of, within Producer.DeliveryTimeout.
func (p *BatchProducer) learn(ctx context.Context, msgs []*BatchMessage) {
	missing := p.unknown(msgs)
	if missing == nil {
		return
	}
	p.lookUp(ctx, missing)
	for _, m := range msgs {
		if err := missing[m.encoded.Topic]; err != nil && m.Err == nil {
			m.Err = err
		}
	}
}

// unknown are the topics of messages that nothing is known of; nil: none.
func (p *BatchProducer) unknown(msgs []*BatchMessage) (missing map[string]error) {
	last := ""
	for i, m := range msgs {
		name := m.encoded.Topic
		if i > 0 && name == last || m.Err != nil {
			continue
		}
		last = name
		p.topic(name)
		if t := p.client.meta.Load().topics[name]; t == nil || len(t.partitions) == 0 {
			if missing == nil {
				missing = map[string]error{}
			}
			missing[name] = nil
		}
	}
	return missing
}

// lookUp asks about topics, all of them by one request, and one by one about what that does not
// bring, and notes why one cannot be used. A topic that could not be looked up several times in a
// row is not asked about for a while (ErrCircuitOpen).
func (p *BatchProducer) lookUp(ctx context.Context, missing map[string]error) {
	if mayNotAsk() {
		for name := range missing {
			missing[name] = fmt.Errorf("topic %q would have to be looked up: %w", name, ErrInCallback)
		}
		return
	}
	if timeout := p.cfg.Producer.DeliveryTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrDeliveryTimeout)
		defer cancel()
	}
	var names []string
	for name := range missing {
		if missing[name] = p.topic(name).refusedNow(name); missing[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		_ = p.client.RefreshMetadata(ctx, names...) // what it does not bring is asked for below
	}
	for _, name := range names {
		missing[name] = p.lookUpOne(ctx, name)
	}
}

func (p *BatchProducer) lookUpOne(ctx context.Context, name string) error {
	_, err := p.client.topic(ctx, name)
	switch timeout := p.cfg.Producer.DeliveryTimeout; {
	case err == nil, ctx.Err() == nil:
		p.topic(name).lookedUp(err)
	case errors.Is(context.Cause(ctx), ErrDeliveryTimeout):
		p.topic(name).lookedUp(err)
		err = fmt.Errorf("%w (%v): %w", ErrDeliveryTimeout, timeout, err)
	default: // the caller did not wait for it: that says nothing about the topic
	}
	return err
}

// refusedNow is why the topic is not to be looked up now; nil: it is.
func (t *batchTopic) refusedNow(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.circuit.open(time.Now()) {
		return t.circuit.failure(name, -1)
	}
	return nil
}

// lookedUp notes the outcome of a look-up.
func (t *batchTopic) lookedUp(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.circuit.succeeded()
	} else {
		t.circuit.failed(time.Now(), err)
	}
}
