package bench

import (
	"context"

	"github.com/kbench/kbench/client"
)

// reader reads every partition of the topic from its beginning.
func (j *job) reader(ctx context.Context) (*client.Reader, error) {
	c, err := client.NewClientContext(ctx, j.bootstrap(), j.cfg)
	if err != nil {
		return nil, err
	}
	partitions, err := c.Partitions(ctx, j.Topic)
	if err != nil {
		return nil, err
	}
	return c.NewReader(client.ReaderConfig{Topic: j.Topic, Partitions: partitions})
}

func consumeBatches(ctx context.Context, j *job) error {
	r, err := j.reader(ctx)
	if err != nil {
		return err
	}
	buf := make([]client.Message, 512)
	for j.done < j.N {
		n, err := r.FetchBatch(ctx, buf[:min(int64(len(buf)), j.N-j.done)])
		if err != nil {
			return err
		}
		j.done += int64(n)
	}
	return r.Close()
}

func consumeMessages(ctx context.Context, j *job) error {
	r, err := j.reader(ctx)
	if err != nil {
		return err
	}
	for ; j.done < j.N; j.done++ {
		if _, err := r.FetchMessage(ctx); err != nil {
			return err
		}
	}
	return r.Close()
}
