package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/kbench/kbench/client"
)

// produce sends j.N messages run by run: fill makes one of them, with the time it is handed over,
// and send hands a run over. Allocations are counted from the last run of the first fifth on: by
// then buffers and pools have their size.
func produce[M any](j *job, p *pool[M], fill func(*M, time.Time), send func([]*M) error) error {
	counted, before := int64(-1), uint64(0)
	for sent := int64(0); sent < j.N; {
		run := p.take()
		n := min(int64(len(run)), j.N-sent)
		var now time.Time
		for i, m := range run[:n] {
			if i%clockRun == 0 {
				now = time.Now()
			}
			fill(m, now)
		}
		if err := send(run[:n]); err != nil {
			return err
		}
		p.empty(run)
		if sent += n; counted < 0 && sent >= j.N/5 {
			counted, before = sent, mallocs()
		}
	}
	if counted >= 0 && counted < j.N {
		j.say("allocs/rec", fmt.Sprintf("%.4f", float64(mallocs()-before)/float64(j.N-counted)))
	}
	return nil
}

func (j *job) fill(m *client.ProducerMessage, now time.Time) {
	m.Timestamp, m.Value = now, j.values.next()
	m.Partition, _ = j.turns.Partition(m, partitions)
}

// asyncProducer takes the partitions that fill names: turns asked by fill, and not by the producer,
// which asks a partitioner of the user's with more ado than its own.
func (j *job) asyncProducer() (*client.AsyncProducer, error) {
	j.turns.each = j.perBatch()
	j.cfg.Producer.NewPartitioner, j.cfg.Producer.Partitioner = nil, "manual"
	return client.NewAsyncProducer(j.bootstrap(), j.cfg)
}

// finish waits for every outcome and closes.
func (j *job) finish(ctx context.Context, p *client.AsyncProducer, t *tally) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	j.done, j.h = t.n, t.h
	return t.failed()
}

func produceCallback(ctx context.Context, j *job) error {
	p, err := j.asyncProducer()
	if err != nil {
		return err
	}
	t := newTally(j.Topic)
	done := t.done
	err = produce(j, t.pool, j.fill, func(run []*client.ProducerMessage) error {
		for _, m := range run {
			if err := p.Produce(ctx, m, done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return j.finish(ctx, p, t)
}

func produceRuns(ctx context.Context, j *job) error {
	p, err := j.asyncProducer()
	if err != nil {
		return err
	}
	t := newTally(j.Topic)
	err = produce(j, t.pool, j.fill, func(run []*client.ProducerMessage) error {
		_, err := p.ProduceRun(ctx, run, t)
		return err
	})
	if err != nil {
		return err
	}
	return j.finish(ctx, p, t)
}

func produceChannels(ctx context.Context, j *job) error {
	j.cfg.Producer.Return.Successes, j.cfg.Producer.Return.Errors = true, true
	j.cfg.ChannelBufferSize = 4096
	p, err := j.asyncProducer()
	if err != nil {
		return err
	}
	t := newTally(j.Topic)
	read := make(chan struct{}) // closed by the reader of Successes
	// Both end when AsyncClose closes their channel; produceChannels waits for the first.
	go func() {
		defer close(read)
		for m := range p.Successes() {
			t.done(m, nil)
		}
	}()
	go func() {
		for e := range p.Errors() {
			t.fail(e)
		}
	}()
	err = produce(j, t.pool, j.fill, func(run []*client.ProducerMessage) error {
		for _, m := range run {
			p.Input() <- m
		}
		return t.failed()
	})
	if err != nil {
		return err
	}
	p.AsyncClose(ctx)
	<-read
	j.done, j.h = t.n, t.h
	return t.failed()
}

// produceSync sends one message at a time, with nothing to wait for but the broker.
func produceSync(ctx context.Context, j *job) error {
	j.cfg.Producer.Flush.Frequency = 0
	p, err := client.NewSyncProducer(j.bootstrap(), j.cfg)
	if err != nil {
		return err
	}
	t := newTally(j.Topic)
	m := &client.ProducerMessage{Topic: j.Topic}
	for range j.N {
		m.Value = j.values.next()
		start := time.Now()
		if _, _, err := p.SendMessageContext(ctx, m); err != nil {
			return err
		}
		t.h.Record(int64(time.Since(start)))
	}
	j.done, j.h = j.N, t.h
	return p.Close(ctx)
}
