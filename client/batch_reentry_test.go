package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// P24: a Send inside a function that the producer calls is refused where it would wait for itself,
// and does what it says everywhere else.
func TestP24ASendInsideAUsersFunction(t *testing.T) {
	const waits, queued = false, true
	for _, tc := range []struct {
		name    string
		hook    string
		async   bool
		topic   string // "u" is not known yet
		refused bool
	}{
		{"the partitioner holds its topic's turn", "Partitioner", waits, "t", true},
		{"and another topic's partitioner might wait for this one's", "Partitioner", waits, "u", true},
		{"OnRequest runs on the goroutine that reads the answer", "OnRequest", waits, "t", true},
		{"BackoffFunc is refused for all", "BackoffFunc", waits, "t", true},
		{"OnResults runs where the call was made", "OnResults", waits, "t", false},
		{"which may as well look a topic up", "OnResults", waits, "u", false},
		{"so does an encoder", "Encoder", waits, "t", false},
		{"and an interceptor", "Interceptor", waits, "t", false},
		{"queueing waits for nothing in a partitioner", "Partitioner", queued, "t", false},
		{"nor in OnRequest", "OnRequest", queued, "t", false},
		{"nor in OnResults", "OnResults", queued, "t", false},
		{"looking a topic up would, in a partitioner", "Partitioner", queued, "u", true},
		{"and in OnRequest", "OnRequest", queued, "u", true},
		{"OnResults is on a goroutine that no answer needs", "OnResults", queued, "u", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1, topics: []string{"u"}}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				var p *BatchProducer
				inner, got := &BatchMessage{Topic: tc.topic, Value: "inner"}, error(nil)
				cfg := b.config()
				cfg.Producer.Batch.Async = tc.async
				hookBatch(b, cfg, tc.hook, func() { got = p.Send(context.Background(), inner) })
				p = b.batch(t, cfg)
				sent := make(chan error, 1)
				go func() { // ends with Send, which DeliveryTimeout bounds
					sent <- errors.Join(p.Send(context.Background(), &BatchMessage{Topic: "t", Value: "outer"}), p.Flush(context.Background()))
				}()
				select {
				case err := <-sent:
					require.NoError(t, err)
				case <-time.After(cfg.Producer.DeliveryTimeout / 2):
					t.Fatal("it waited for itself")
				}
				require.NoError(t, p.Flush(context.Background()))
				require.Less(t, time.Since(start), time.Second, "nobody waited but for a refresh")
				want := []string{"inner", "outer"}
				if tc.refused {
					want = want[1:]
					require.ErrorIs(t, inner.Err, ErrInCallback)
					require.EqualValues(t, -1, inner.Partition)
				} else {
					require.NoError(t, errors.Join(got, inner.Err))
				}
				if !tc.async && tc.refused {
					require.ErrorIs(t, got, ErrInCallback)
				}
				var arrived []string
				for _, a := range b.batches() {
					arrived = append(arrived, a.values...)
				}
				slices.Sort(arrived)
				require.Equal(t, want, slices.Compact(arrived), "what was sent, however often")
			})
		})
	}
}

// hookBatch has one of a batch producer's functions do something the first time that it is called.
func hookBatch(b *fakeBroker, cfg *Config, hook string, do func()) {
	var called atomic.Bool
	first := func() {
		if called.CompareAndSwap(false, true) {
			do()
		}
	}
	switch hook {
	default:
		hookProducer(b, cfg, hook, first)
	case "OnResults":
		cfg.Producer.Batch.OnResults = batchDeliveries(func([]*BatchMessage, Delivery) { first() })
	case "Encoder":
		cfg.Producer.Batch.Values = EncoderFunc(func(topic string, v any) ([]byte, error) {
			first()
			return DefaultEncoder.Encode(topic, v)
		})
	case "Interceptor":
		cfg.Producer.Interceptors = []ProducerInterceptor{interceptorFunc(first)}
	}
}
