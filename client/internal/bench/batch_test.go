package bench

import (
	"context"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results/hist"
)

// batchTally is the tally of the batch producer's messages; its outcomes come from one goroutine.
type batchTally struct {
	tally // for its histogram, count and failure
	pool  *pool[client.BatchMessage]
	back  []*client.BatchMessage
}

// DeliveredBatch takes a run of outcomes.
func (t *batchTally) DeliveredBatch(run []*client.BatchMessage, d client.Delivery) {
	now := time.Now()
	for _, m := range run {
		if m.Err != nil {
			t.fail(m.Err)
		}
		t.h.Record(int64(now.Sub(m.Timestamp)))
		t.n++
		if t.back = append(t.back, m); len(t.back) == runLength {
			t.back = t.pool.give(t.back)
		}
	}
}

// produceBatch sends through the batch producer's queue. It has no idempotence.
func produceBatch(ctx context.Context, j *job) error {
	t := &batchTally{
		tally: tally{h: hist.New()}, back: make([]*client.BatchMessage, 0, runLength),
		pool: newPool(func(m *client.BatchMessage) { m.Topic = j.Topic }),
	}
	j.Idempotent, j.cfg.Producer.Idempotent = false, false
	j.cfg.Producer.Batch.Async, j.cfg.Producer.Batch.OnResults = true, t
	j.cfg.Producer.Flush.Messages = j.perBatch()
	p, err := client.NewBatchProducer(j.bootstrap(), j.cfg)
	if err != nil {
		return err
	}
	fill := func(m *client.BatchMessage, now time.Time) { m.Timestamp, m.Value = now, j.values.nextAny() }
	err = produce(j, t.pool, fill, func(run []*client.BatchMessage) error { return p.Send(ctx, run...) })
	if err != nil {
		return err
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	j.done, j.h = t.n, t.h
	return t.failed()
}
