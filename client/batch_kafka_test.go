//go:build kafka

package client

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// batchSamples are samples for a BatchProducer, whose encoders get a type of the test's own.
func batchSamples(topic string, n int) []*BatchMessage {
	out := make([]*BatchMessage, n)
	for i, m := range samples(topic, 0, n) {
		out[i] = &BatchMessage{Topic: topic, Key: raw{m.Key}, Value: raw{m.Value}, Headers: m.Headers}
	}
	return out
}

// raw is a type with an encoder of the user's.
type raw struct{ bytes []byte }

// What a real broker keeps is what was sent: keys, values and headers of every kind, in both modes.
func TestKafkaBatchProducer(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{
		{"by default", func(*Config) {}},
		{"queued", func(c *Config) { c.Producer.Batch.Async = true }},
		{"queued, lingering, with zstd", func(c *Config) {
			c.Producer.Batch.Async, c.Producer.Compression = true, record.ZSTD
			c.Producer.Flush.Frequency = 5 * time.Millisecond
		}},
		{"as Kafka 2.1 knows requests, with small batches", func(c *Config) {
			c.Version, c.Producer.Flush.MaxMessages = Version{2, 1}, 10
		}},
		{"on the classic partitioner, acks from the leader", func(c *Config) {
			c.Producer.Partitioner, c.Producer.RequiredAcks = "classic", AcksLeader
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newRealBed(t, cluster, func(c *Config) {
				encoder := EncoderOf(func(_ string, v raw) ([]byte, error) { return v.bytes, nil })
				c.Producer.Batch.Keys, c.Producer.Batch.Values = encoder, encoder
				tc.change(c)
			})
			topic := b.topic(t, 4, nil)
			p, err := NewBatchProducerFromClient(b.c)
			require.NoError(t, err)
			const n = 500
			msgs := batchSamples(topic, n)
			for part := range slices.Chunk(msgs, 120) {
				require.NoError(t, p.Send(b.ctx, part...))
			}
			require.NoError(t, p.Flush(b.ctx))
			places, sent := map[string]bool{}, samples(topic, 0, n)
			for i, m := range msgs {
				require.NoError(t, m.Err)
				sent[i].Partition, sent[i].Offset = m.Partition, m.Offset
				places[fmt.Sprint(m.Partition, "/", m.Offset)] = true
			}
			require.Len(t, places, n, "each has an offset of its own")
			require.NoError(t, p.Close(b.ctx))
			requireSamples(t, topic, b.readBack(t, topic, n), sent)
		})
	}
}

// A topic whose limit is lower than ours: only what is too large by itself fails.
func TestKafkaBatchTooLargeIsSplit(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), nil)
	topic := b.topic(t, 1, map[string]string{"max.message.bytes": "2000"})
	p, err := NewBatchProducerFromClient(b.c)
	require.NoError(t, err)
	msgs := make([]*BatchMessage, 100)
	for i := range msgs {
		msgs[i] = &BatchMessage{Topic: topic, Value: make([]byte, 100)}
	}
	msgs[40].Value = make([]byte, 5000)
	err = p.Send(b.ctx, msgs...)
	var large *MessageTooLargeError
	require.ErrorAs(t, err, &large)
	require.Greater(t, large.Size, 5000)
	var bad *BatchError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, msgs[40:41], bad.Failed)
	require.NoError(t, p.Close(b.ctx))
}
