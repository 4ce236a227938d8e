// Panics of the user's functions, and of the pipeline's own stages, stay where they are: they are
// counted and become errors.

package client

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// errNoPartitioner is a mistake in the user's NewPartitioner.
var errNoPartitioner = errors.New("producer.newPartitioner returned nil")

// caught counts a panic and makes it the error of whatever it hit. Call it from the deferred
// function that recovered.
func (p *AsyncProducer) caught(where string, v any) error { return caught(&p.cfg, &p.panics, where, v) }

func caught(cfg *Config, count *atomic.Int64, where string, v any) error {
	count.Add(1)
	if cfg.Logger != nil {
		cfg.Logger.Error("panic in "+where, "panic", v, "stack", string(debug.Stack()))
	}
	return &PanicError{Where: where, Value: v}
}

// newPartitioner makes the partitioner of a topic.
func (p *AsyncProducer) newPartitioner(topic string) (Partitioner, error) {
	made, err := p.makeByUser(topic)
	if err == nil && made == nil {
		err = errNoPartitioner
	}
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", topic, err)
	}
	return made, nil
}

func (p *AsyncProducer) makeByUser(topic string) (made Partitioner, err error) {
	userCode.Add(1)
	defer func() {
		userCode.Add(-1)
		if v := recover(); v != nil {
			made, err = nil, p.caught("producer.newPartitioner", v)
		}
	}()
	return p.cfg.partitioner(topic), nil
}
