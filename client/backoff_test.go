package client

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// said is what was logged.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// logger writes into s.
func (s *said) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// A BackoffFunc that panics is counted where the user looks, and logged; the other settings say how
// long to wait.
func TestPanicsOfBackoffFuncsAreCounted(t *testing.T) {
	for _, tc := range []struct {
		name  string
		where func(*Config) *RetryConfig
		fail  broker.Failure // what is retried
		do    func(t *testing.T, c *Client, b *BatchProducer) error
		own   bool // counted by the producer, and not for everybody who shares the client
	}{
		{
			"metadata.retry.backoffFunc", func(c *Config) *RetryConfig { return &c.Metadata.Retry }, broker.Failure{},
			func(t *testing.T, c *Client, _ *BatchProducer) error { return c.RefreshMetadata(within(t)) }, false,
		},
		{
			"admin.retry.backoffFunc", func(c *Config) *RetryConfig { return &c.Admin.Retry },
			broker.Failure{Key: int16(kmsg.CreateTopics), Code: wire.ErrNotController.Code},
			func(t *testing.T, c *Client, _ *BatchProducer) error {
				return c.CreateTopics(within(t), TopicSpec{Name: "new", Partitions: 1, ReplicationFactor: 1})
			}, false,
		},
		{
			"producer.retry.backoffFunc", func(c *Config) *RetryConfig { return &c.Producer.Retry },
			broker.Failure{Key: keyProduce, Code: wire.ErrNotEnoughReplicas.Code},
			func(t *testing.T, _ *Client, b *BatchProducer) error {
				return b.Send(within(t), &BatchMessage{Topic: "t"})
			}, true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := cluster(t, 1, 1)
			var armed atomic.Bool
			var log said
			cfg := quickConfig()
			cfg.Logger = log.logger()
			tc.where(cfg).BackoffFunc = func(int) time.Duration {
				if armed.CompareAndSwap(true, false) {
					panic("boom")
				}
				return time.Millisecond
			}
			c, err := NewClient(k.Bootstrap(), cfg)
			require.NoError(t, err)
			defer c.Close()
			batch, err := NewBatchProducerFromClient(c)
			require.NoError(t, err)
			defer batch.Close(within(t))
			single, err := NewSyncProducerFromClient(c)
			require.NoError(t, err)
			defer single.Close(within(t))
			r, err := c.NewReader(ReaderConfig{Topic: "t"})
			require.NoError(t, err)
			defer r.Close()
			armed.Store(true)
			if tc.fail.Key != 0 || tc.own {
				f := k.Fail(tc.fail)
				defer f.Remove()
			}
			require.NoError(t, tc.do(t, c, batch))
			require.False(t, armed.Load(), "it was asked")
			shared := int64(1)
			if tc.own {
				shared = 0
			}
			require.EqualValues(t, 1, batch.Stats().Panics)
			require.Equal(t, shared, single.Stats().Panics)
			require.Equal(t, shared, r.Stats().Panics)
			require.Contains(t, log.String(), `"panic in `+tc.name+`" panic=boom`)
		})
	}
}

// Every form of the producer tells what it has done, and what its client has measured.
func TestEveryFormHasStatsAndMetrics(t *testing.T) {
	k := cluster(t, 1, 1)
	async := asyncProducer(t, k, quickConfig())
	single := &SyncProducer{asyncProducer(t, k, quickConfig())}
	batch := batchProducer(t, k.Bootstrap(), quickConfig())
	for _, tc := range []struct {
		name string
		send func() error
		p    interface {
			Stats() ProducerStats
			Metrics() Metrics
		}
	}{
		{"async", func() error { return sendOne(t, async, &ProducerMessage{Topic: "t"}) }, async},
		{"sync", func() error { _, _, err := single.SendMessage(&ProducerMessage{Topic: "t"}); return err }, single},
		{"batch", func() error { return batch.Send(within(t), &BatchMessage{Topic: "t"}) }, batch},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := k.Fail(broker.Failure{Key: keyProduce, Code: wire.ErrNotEnoughReplicas.Code})
			defer f.Remove()
			require.NoError(t, tc.send())
			require.Equal(t, ProducerStats{Retries: 1}, tc.p.Stats())
			m := tc.p.Metrics()
			require.EqualValues(t, 2, m.Overall.Request("Produce").Latency.Count())
		})
	}
}
