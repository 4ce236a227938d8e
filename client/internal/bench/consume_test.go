package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client"
)

// reader reads every partition of the topic from its beginning.
func (j *job) reader(ctx context.Context, onFetch func(client.FetchStats)) (*client.Reader, error) {
	c, err := client.NewClientContext(ctx, j.bootstrap(), j.cfg)
	if err != nil {
		return nil, err
	}
	partitions, err := c.Partitions(ctx, j.Topic)
	if err != nil {
		return nil, err
	}
	return c.NewReader(client.ReaderConfig{Topic: j.Topic, Partitions: partitions, OnFetch: onFetch})
}

// readBuffer is how many messages a reader takes at a time: few enough that they are still in the
// processor's nearest cache when they are looked at.
const readBuffer = 256

func consumeBatches(ctx context.Context, j *job) error {
	r, err := j.reader(ctx, nil)
	if err != nil {
		return err
	}
	p := progress{job: j}
	buf := make([]client.Message, readBuffer)
	for j.done < j.N {
		n, err := r.FetchBatch(ctx, buf[:min(int64(len(buf)), j.N-j.done)])
		if err != nil {
			return err
		}
		p.read(int64(n))
	}
	p.finish()
	return r.Close()
}

func consumeMessages(ctx context.Context, j *job) error {
	r, err := j.reader(ctx, nil)
	if err != nil {
		return err
	}
	p := progress{job: j}
	for j.done < j.N {
		if _, err := r.FetchMessage(ctx); err != nil {
			return err
		}
		p.read(1)
	}
	p.finish()
	return r.Close()
}

// consumeIdle reads partitions of which few get anything.
func consumeIdle(ctx context.Context, j *job) error {
	var fetches atomic.Int64
	r, err := j.reader(ctx, func(client.FetchStats) { fetches.Add(1) })
	if err != nil {
		return err
	}
	p := progress{job: j, fetches: &fetches}
	buf := make([]client.Message, readBuffer)
	for j.done < j.N {
		n, err := r.FetchBatch(ctx, buf)
		if err != nil {
			return err
		}
		p.read(int64(n))
	}
	p.finish()
	return r.Close()
}

// progress takes down what readers say: the rate from the first messages on, for before them much
// is looked up and connected; allocations from a fifth of the messages on, when buffers have their
// size; and with fetches the requests and the CPU a second, from then on as well.
type progress struct {
	job     *job
	fetches *atomic.Int64 // requests finished; nil: rate and allocations are what is asked

	first  time.Time
	firstN int64

	warm        time.Time
	warmN       int64
	warmMallocs uint64
	warmCPU     time.Duration
	warmFetches int64
}

// read takes down that n messages more were read.
func (p *progress) read(n int64) {
	j := p.job
	before := j.done
	j.done += n
	if before == 0 {
		p.first, p.firstN = time.Now(), j.done
	}
	if w := j.N / 5; before < w && j.done >= w {
		p.warm, p.warmN, p.warmMallocs = time.Now(), j.done, mallocs()
		if p.fetches != nil {
			p.warmCPU, p.warmFetches = cpuTime(), p.fetches.Load()
		}
	}
}

// finish is called after the last message.
func (p *progress) finish() {
	j := p.job
	if took := time.Since(p.first).Seconds(); j.done > p.firstN {
		j.say("rate", fmt.Sprintf("%.0f/s", float64(j.done-p.firstN)/took))
	}
	if p.warm.IsZero() || j.done == p.warmN {
		return
	}
	j.say("allocs/rec", fmt.Sprintf("%.4f", float64(mallocs()-p.warmMallocs)/float64(j.done-p.warmN)))
	if p.fetches != nil {
		took := time.Since(p.warm).Seconds()
		j.say("req/s", fmt.Sprintf("%.2f", float64(p.fetches.Load()-p.warmFetches)/took))
		j.say("cpu/s", time.Duration(float64(cpuTime()-p.warmCPU)/took))
	}
}
