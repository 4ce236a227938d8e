package client

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// cycles is how often a producer is made, used and closed: 10 000 times when KBENCH_SOAK is set.
func cycles() int {
	if os.Getenv("KBENCH_SOAK") != "" {
		return 10_000
	}
	return 300
}

// state is what must be the same before and after.
type state struct {
	goroutines, connections int
	heap                    uint64
}

func stateOf(c *broker.Cluster) (s state) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held
	runtime.ReadMemStats(&m)
	s.connections, _ = c.Connections()
	s.goroutines, s.heap = runtime.NumGoroutine(), m.HeapAlloc
	return s
}

// P23: made, used and closed again and again, a producer of any form leaves no goroutine, no
// connection and no memory behind.
func TestP23CreateUseCloseLeavesNothing(t *testing.T) {
	const each = 3
	message := func() *ProducerMessage { return &ProducerMessage{Topic: "t", Value: []byte("x")} }
	forms := []struct {
		name string
		use  func(t *testing.T, c *broker.Cluster, cfg *Config)
	}{
		{"async", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			p, err := NewAsyncProducer(c.Bootstrap(), cfg)
			require.NoError(t, err)
			for range each {
				require.NoError(t, p.Produce(context.Background(), message(), nil))
			}
			require.NoError(t, p.Close(within(t)))
		}},
		{"sync", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			p, err := NewSyncProducer(c.Bootstrap(), cfg)
			require.NoError(t, err)
			for range each {
				_, _, err := p.SendMessage(message())
				require.NoError(t, err)
			}
			require.NoError(t, p.Close(within(t)))
		}},
		{"channels", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			p, err := NewAsyncProducer(c.Bootstrap(), cfg)
			require.NoError(t, err)
			for range each {
				p.Input() <- message()
			}
			p.AsyncClose(within(t))
			n := 0
			for range p.Successes() {
				n++
			}
			require.Equal(t, each, n)
			require.NoError(t, p.Close(within(t)))
		}},
		{"batch", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			p, err := NewBatchProducer(c.Bootstrap(), cfg)
			require.NoError(t, err)
			require.NoError(t, p.Send(context.Background(), numberedBatch(each, each)...))
			require.NoError(t, p.Close(within(t)))
		}},
		{"batch async", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			queued := *cfg
			queued.Producer.Batch.Async = true
			p, err := NewBatchProducer(c.Bootstrap(), &queued)
			require.NoError(t, err)
			require.NoError(t, p.Send(context.Background(), numberedBatch(each, each)...))
			require.NoError(t, p.Close(within(t)))
			n := 0
			for m := range p.Results() {
				require.NoError(t, m.Err)
				n++
			}
			require.Equal(t, each, n)
		}},
		{"transactional", func(t *testing.T, c *broker.Cluster, cfg *Config) {
			named := *cfg
			named.Producer.Idempotent, named.Producer.Transaction.ID = true, "p23"
			p, err := NewAsyncProducer(c.Bootstrap(), &named)
			require.NoError(t, err)
			require.NoError(t, p.BeginTransaction(context.Background()))
			for range each {
				require.NoError(t, p.Produce(context.Background(), message(), nil))
			}
			require.NoError(t, p.CommitTransaction(context.Background()))
			require.NoError(t, p.Close(within(t)))
		}},
	}
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			c, err := broker.Start(broker.Options{Discard: true, Topics: []broker.Topic{{Name: "t", Partitions: 3}}})
			require.NoError(t, err)
			defer c.Close()
			cfg := NewConfig()
			cfg.Producer.Return.Successes = true
			// within registers a clean-up for each call: a test of its own takes them away again.
			run := func(n int) {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					for range n {
						form.use(t, c, cfg)
					}
				})
			}
			run(20) // what is made once and kept
			before := stateOf(c)
			n := cycles()
			run(n)
			after := stateOf(c)
			for give := time.Now().Add(patience); after.goroutines > before.goroutines || after.connections > before.connections; after = stateOf(c) {
				require.True(t, time.Now().Before(give), "before %+v, after %+v", before, after)
				runtime.Gosched() // readers of connections end soon after Close, which does not wait for them
			}
			require.Less(t, after.heap, before.heap+512<<10, "heap before and after")
			t.Logf("%d cycles: before %+v, after %+v", n, before, after)
		})
	}
}
