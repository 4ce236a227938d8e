package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A message by itself goes straight to its partition, but not past what its caller handed over before
// it and what waits in the topic's queue.
func TestShortWayOvertakesNothing(t *testing.T) {
	var hold chan struct{} // of the test's bubble
	b := &fakeBroker{partitions: 2, answer: func(int, *kmsg.ProduceRequest) ruling { return ruling{wait: hold} }}
	onPipes(t, b, func(t *testing.T, _ time.Time) {
		const size = 8
		hold = make(chan struct{})
		cfg := queueConfig(b, size)
		cfg.Producer.Partitioner = "manual"
		p := b.producer(t, cfg)
		one := func(partition int32) *ProducerMessage {
			m := to(partition, "x")
			require.NoError(t, p.Produce(context.Background(), m, nil))
			synctest.Wait()
			return m
		}
		for range heldBeside + bound(size) + 2 { // two more than partition 0 has room for
			one(0)
		}
		require.Equal(t, int64(shared), p.topics["t"].stage.alone.Load(), "something waits in the topic's queue")
		run := to(1, "first")
		_, err := p.ProduceRun(context.Background(), []*ProducerMessage{run}, nil)
		require.NoError(t, err)
		second := one(1)
		close(hold)
		require.NoError(t, p.Flush(context.Background()))
		require.Less(t, run.Offset, second.Offset, "handed over first")
	})
}

// known sends two messages, by the second of which the topic is known: others may go the short way.
func known(t *testing.T, p *AsyncProducer) {
	for range 2 {
		require.NoError(t, p.Produce(within(t), &ProducerMessage{Topic: "t"}, nil))
		require.NoError(t, p.Flush(within(t)))
	}
	require.NotNil(t, p.topics["t"].view.Load())
	require.Equal(t, p.client.meta.Load(), p.topics["t"].view.Load().known)
}

// What the short way cannot do is left to the long one: the outcome is the same.
func TestWhatDoesNotTakeTheShortWay(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		m      ProducerMessage
		fails  error
		says   string
	}{
		"a partition that is not there": {m: ProducerMessage{Topic: "t", Partition: 7}, fails: ErrPartitionInvalid},
		"a message that is too large": {
			change: func(c *Config) { c.Producer.MaxMessageBytes = 200 },
			m:      ProducerMessage{Topic: "t", Value: make([]byte, 201)}, says: "200",
		},
		"another topic": {m: ProducerMessage{Topic: "u"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 1, 1)
			require.NoError(t, c.CreateTopic("u", 1, nil))
			cfg := quickConfig()
			cfg.Producer.Partitioner = "manual"
			if test.change != nil {
				test.change(cfg)
			}
			p := asyncProducer(t, c, cfg)
			known(t, p)
			outcome := make(chan error, 1)
			require.NoError(t, p.Produce(within(t), &test.m, func(_ *ProducerMessage, err error) { outcome <- err }))
			switch err := <-outcome; {
			case test.fails != nil:
				require.ErrorIs(t, err, test.fails)
			case test.says != "":
				require.ErrorContains(t, err, test.says)
			default:
				require.NoError(t, err)
			}
		})
	}
}

// Interceptors, the user's partitioners and transactions are not passed over, keys find their
// partition and messages without one are spread, whichever way they go.
func TestShortWayPassesOverNothing(t *testing.T) {
	c := cluster(t, 1, 6)
	seen := 0
	cfg := quickConfig()
	cfg.Producer.Interceptors = []ProducerInterceptor{onSend(func(*ProducerMessage) { seen++ })}
	p := asyncProducer(t, c, cfg)
	known(t, p)
	known(t, p)
	require.Equal(t, 4, seen)

	for name, partitioner := range map[string]string{"hash": "hash", "murmur2": "murmur2", "crc32": "crc32"} {
		t.Run(name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.Producer.Partitioner = partitioner
			p := asyncProducer(t, c, cfg)
			where := func(m *ProducerMessage, produce func(*ProducerMessage) error) int32 {
				require.NoError(t, produce(m))
				require.NoError(t, p.Flush(within(t)))
				return m.Partition
			}
			long := func(m *ProducerMessage) error {
				_, err := p.ProduceRun(within(t), []*ProducerMessage{m}, nil)
				return err
			}
			short := func(m *ProducerMessage) error { return p.Produce(within(t), m, nil) }
			for i := range 20 {
				key := fmt.Appendf(nil, "key %d", i)
				require.Equal(t, where(&ProducerMessage{Topic: "t", Key: key}, long), where(&ProducerMessage{Topic: "t", Key: key}, short), "%s", key)
			}
			spread := map[int32]bool{}
			for range 12 {
				spread[where(&ProducerMessage{Topic: "t", Value: make([]byte, stickyBytes)}, short)] = true
			}
			require.Len(t, spread, 6)
		})
	}
}

type onSend func(*ProducerMessage)

func (f onSend) OnSend(m *ProducerMessage) { f(m) }

// Outside of a transaction nothing is taken, whatever is known of the topic by then.
func TestShortWayIsNotThatOfTransactions(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, txnConfig("x"))
	begin(t, p)
	known(t, p)
	require.NoError(t, p.CommitTransaction(within(t)))
	require.ErrorIs(t, p.Produce(within(t), &ProducerMessage{Topic: "t"}, nil), ErrNoTransaction)
	require.Len(t, committed(t, c), 2)
}

// Partitions that are added get their share of messages that come one by one, with keys and without.
func TestShortWayKnowsNewPartitions(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, quickConfig())
	at := func(key []byte) int32 {
		m := &ProducerMessage{Topic: "t", Key: key, Value: make([]byte, stickyBytes)}
		require.NoError(t, p.Produce(within(t), m, nil))
		require.NoError(t, p.Flush(within(t)))
		return m.Partition
	}
	require.Zero(t, at(nil))
	p.client.setPartitions(t, within(t), "t", 3)
	require.NoError(t, p.client.RefreshMetadata(within(t), "t"))
	keyless, keyed := map[int32]bool{}, map[int32]bool{}
	for i := range 30 {
		keyless[at(nil)], keyed[at(fmt.Appendf(nil, "key %d", i))] = true, true
	}
	require.Len(t, keyless, 3)
	require.Len(t, keyed, 3)
}

// A message that came to a producer being closed is refused, and nothing of it stays in the books.
func TestShortWayOfAClosedProducer(t *testing.T) {
	c := cluster(t, 1, 1)
	p := asyncProducer(t, c, quickConfig())
	known(t, p)
	require.NoError(t, p.Close(within(t)))
	err := p.Produce(within(t), &ProducerMessage{Topic: "t"}, func(*ProducerMessage, error) { t.Error("it was refused") })
	require.True(t, errors.Is(err, ErrClosed), "%v", err)
	require.Zero(t, p.Stats().Open)
	require.Zero(t, p.buffer.held.Load())
}

// Many at once: whoever finds the topic's stage taken by another on the short way leaves it his message.
func TestShortWayOfManyAtOnce(t *testing.T) {
	const each, callers = 3000, 8
	c := cluster(t, 1, 3)
	p := asyncProducer(t, c, quickConfig())
	known(t, p)
	var decided, failed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { // ends by itself; Wait below waits
			for range each {
				err := p.Produce(within(t), &ProducerMessage{Topic: "t", Value: make([]byte, 50)}, func(_ *ProducerMessage, err error) {
					decided.Add(1)
					if err != nil {
						failed.Add(1)
					}
				})
				if err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Flush(within(t)))
	require.EqualValues(t, each*callers, decided.Load())
	require.Zero(t, failed.Load())
	require.Zero(t, p.topics["t"].stage.alone.Load(), "nobody has to do with the stage any more")
}
