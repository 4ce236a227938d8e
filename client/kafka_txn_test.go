//go:build kafka

package client

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// txnModes are the transactions that the cluster does, and those of Kafka 3.9, which every cluster
// does.
var txnModes = []struct {
	name  string
	limit Version
}{{"the cluster's own", Version{}}, {"v1", Version{3, 9}}}

// txnBed is a real cluster with a client whose producers are transactional.
func txnBed(t *testing.T, cluster *kafkatest.Cluster, limit Version, id string) *realBed {
	return newRealBed(t, cluster, func(c *Config) {
		c.Version = limit
		c.Producer.Idempotent, c.Producer.Transaction.ID = true, id
		c.Producer.Flush.MaxMessages = 20
	})
}

func (b *realBed) producer(t *testing.T) *AsyncProducer {
	p, err := NewAsyncProducerFromClient(b.c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(b.ctx)) })
	return p
}

func (b *realBed) transact(t *testing.T, p *AsyncProducer, msgs []*ProducerMessage, commit bool) {
	require.NoError(t, p.BeginTransaction(b.ctx))
	var out tally
	_, err := p.ProduceRun(b.ctx, msgs, &out)
	require.NoError(t, err)
	if commit {
		require.NoError(t, p.CommitTransaction(b.ctx))
	} else {
		require.NoError(t, p.Flush(b.ctx))
		require.NoError(t, p.AbortTransaction(b.ctx))
	}
	out.require(t, len(msgs), 0)
}

func (b *realBed) numbered(topic, prefix string, n int) []*ProducerMessage {
	out := make([]*ProducerMessage, n)
	for i := range out {
		out[i] = &ProducerMessage{Topic: topic, Key: fmt.Appendf(nil, "k%d", i%10), Value: fmt.Appendf(nil, "%s-%d", prefix, i)}
	}
	return out
}

// committed is what a reader of ours with read_committed sees.
func (b *realBed) committed(t *testing.T, topic string) []string {
	plain := newRealBed(t, b.Cluster, func(c *Config) {
		c.Producer.Partitioner = "manual"
		c.Consumer.IsolationLevel = ReadCommitted
	})
	got := committedOf(t, b.ctx, plain.c, topic)
	slices.Sort(got)
	return got
}

// requireConsoleCommitted has Kafka's own consumer read topics up to the marks of their ends.
func requireConsoleCommitted(t *testing.T, cluster *kafkatest.Cluster, topics string, want []string, marks int) {
	out := cluster.Script(t, "tool", "ConsoleConsumer", "--bootstrap-server", strings.Join(cluster.Bootstrap, ","),
		"--include", topics, "--from-beginning", "--isolation-level", "read_committed",
		"--max-messages", strconv.Itoa(len(want)+marks), "--timeout-ms", "60000")
	var got []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "tx") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
}

func TestKafkaTransactionsShowAllOrNothing(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	prefix := fmt.Sprintf("kbench-test-txn-%d", time.Now().UnixNano())
	var all []string
	for i, mode := range txnModes {
		t.Run(mode.name, func(t *testing.T) {
			b := txnBed(t, cluster, mode.limit, fmt.Sprintf("kbench-test-%d", time.Now().UnixNano()))
			topic := fmt.Sprintf("%s-%d", prefix, i)
			require.NoError(t, b.c.CreateTopics(b.ctx, TopicSpec{Name: topic, Partitions: 3, ReplicationFactor: 1}))
			p := b.producer(t)
			group := GroupMetadata{GroupID: topic + "-group"}
			var want []string
			for i, commit := range []bool{true, false, true, true, false, false} {
				require.NoError(t, p.BeginTransaction(b.ctx))
				msgs := b.numbered(topic, fmt.Sprintf("tx-%s-%d", mode.name, i), 200)
				var out tally
				_, err := p.ProduceRun(b.ctx, msgs, &out)
				require.NoError(t, err)
				if i%2 == 1 {
					require.NoError(t, p.SendOffsetsToTransaction(b.ctx, []GroupOffset{{Topic: topic, Partition: 1, Offset: int64(100 + i)}}, group))
				}
				if commit {
					require.NoError(t, p.CommitTransaction(b.ctx))
					want = append(want, texts(msgs)...)
				} else {
					require.NoError(t, p.Flush(b.ctx))
					require.NoError(t, p.AbortTransaction(b.ctx))
				}
				out.require(t, 200, 0)
			}
			slices.Sort(want)
			require.Equal(t, want, b.committed(t, topic))
			all = append(all, want...)
			require.Equal(t, map[string]int64{topic + "/1": 103}, groupOffsets(t, b.ctx, b.c, group.GroupID), "those of transactions 1 and 5 were aborted")
			require.Equal(t, p.txn.v2(), b.sent.of(0)[0] > wire.LastProduceTxnV1)
			require.Equal(t, p.txn.v2(), b.sent.of(26)[0] > wire.LastEndTxnTxnV1)
			require.Equal(t, p.txn.v2(), len(b.sent.of(24)) == 0, "partitions are added by producing, or asked for")
			if mode.limit != (Version{}) {
				require.False(t, p.txn.v2())
			}
		})
	}
	if !t.Failed() {
		requireConsoleCommitted(t, cluster, prefix+".*", all, 3*len(txnModes))
	}
	admin := newRealBed(t, cluster, nil)
	for i := range txnModes {
		require.NoError(t, admin.c.DeleteTopics(admin.ctx, fmt.Sprintf("%s-%d", prefix, i)))
	}
}

func TestKafkaP12FencedProducer(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, mode := range txnModes {
		t.Run(mode.name, func(t *testing.T) {
			id := fmt.Sprintf("kbench-test-%d", time.Now().UnixNano())
			b := txnBed(t, cluster, mode.limit, id)
			topic := b.topic(t, 3, nil)
			old, young := b.producer(t), txnBed(t, cluster, mode.limit, id).producer(t)
			b.transact(t, old, b.numbered(topic, "tx0", 100), true)
			require.NoError(t, old.BeginTransaction(b.ctx))
			_, err := old.ProduceRun(b.ctx, b.numbered(topic, "tx1", 100), nil)
			require.NoError(t, err)
			require.NoError(t, old.Flush(b.ctx))
			require.NoError(t, young.InitTransactions(b.ctx), "it ends what the other left open")
			var out tally
			_, err = old.ProduceRun(b.ctx, b.numbered(topic, "tx2", 100), &out)
			require.NoError(t, err)
			err = old.CommitTransaction(b.ctx)
			require.Error(t, err)
			t.Logf("commit: %v", err)
			if !strings.Contains(err.Error(), ErrProducerFenced.Error()) { // leaders cannot tell, the abort can
				err = old.AbortTransaction(b.ctx)
				t.Logf("abort: %v", err)
			}
			require.ErrorIs(t, err, ErrProducerFenced)
			require.Equal(t, 100, out.decided())
			require.ErrorIs(t, old.BeginTransaction(b.ctx), ErrProducerFenced)
			b.transact(t, young, b.numbered(topic, "tx3", 100), true)
			want := append(texts(b.numbered(topic, "tx0", 100)), texts(b.numbered(topic, "tx3", 100))...)
			slices.Sort(want)
			require.Equal(t, want, b.committed(t, topic))
		})
	}
}

// A failed message, offsets refused: the transaction is aborted, and the producer goes on.
func TestKafkaFailedTransactionsAreAborted(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, mode := range txnModes {
		t.Run(mode.name, func(t *testing.T) {
			b := txnBed(t, cluster, mode.limit, fmt.Sprintf("kbench-test-%d", time.Now().UnixNano()))
			topic := b.topic(t, 3, map[string]string{"max.message.bytes": "3000"})
			p := b.producer(t)
			b.transact(t, p, b.numbered(topic, "tx0", 100), true)

			require.NoError(t, p.BeginTransaction(b.ctx))
			msgs := b.numbered(topic, "tx1", 100)
			msgs[50].Value = make([]byte, 5000)
			_, err := p.ProduceRun(b.ctx, msgs, nil)
			require.NoError(t, err)
			require.NoError(t, p.Flush(b.ctx))
			err = p.CommitTransaction(b.ctx)
			require.ErrorIs(t, err, ErrTransactionFailed)
			require.ErrorIs(t, err, wire.ErrMessageTooLarge)
			require.NoError(t, p.AbortTransaction(b.ctx))
			b.transact(t, p, b.numbered(topic, "tx2", 100), true)

			require.NoError(t, p.BeginTransaction(b.ctx))
			_, err = p.ProduceRun(b.ctx, b.numbered(topic, "tx3", 100), nil)
			require.NoError(t, err)
			err = p.SendOffsetsToTransaction(b.ctx, []GroupOffset{{Topic: topic, Offset: 1}},
				GroupMetadata{GroupID: topic + "-group", MemberID: "nobody", GenerationID: 7})
			require.ErrorIs(t, err, ErrTransactionFailed)
			t.Logf("offsets: %v", err)
			require.NoError(t, p.AbortTransaction(b.ctx))

			require.NoError(t, p.BeginTransaction(b.ctx)) // of which nothing has left
			_, err = p.ProduceRun(b.ctx, []*ProducerMessage{{Topic: topic, Value: make([]byte, 2_000_000)}}, nil)
			require.NoError(t, err)
			require.ErrorIs(t, p.CommitTransaction(b.ctx), ErrTransactionFailed)
			require.NoError(t, p.AbortTransaction(b.ctx))
			b.transact(t, p, b.numbered(topic, "tx4", 100), true)

			var want []string
			for _, tx := range []string{"tx0", "tx2", "tx4"} {
				want = append(want, texts(b.numbered(topic, tx, 100))...)
			}
			slices.Sort(want)
			require.Equal(t, want, b.committed(t, topic))
		})
	}
}

// Many small ones, each begun while the markers of the one before are being written.
func TestKafkaTransactionsInQuickSuccession(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, mode := range txnModes {
		t.Run(mode.name, func(t *testing.T) {
			const rounds = 50
			b := txnBed(t, cluster, mode.limit, fmt.Sprintf("kbench-test-%d", time.Now().UnixNano()))
			topic := b.topic(t, 3, nil)
			p := b.producer(t)
			b.transact(t, p, b.numbered(topic, "tx", 10), true)
			var want []string
			start := time.Now()
			for i := range rounds {
				msgs := b.numbered(topic, fmt.Sprintf("tx%d", i), 10)
				b.transact(t, p, msgs, i%5 != 4)
				if i%5 != 4 {
					want = append(want, texts(msgs)...)
				}
			}
			t.Logf("%d transactions in %v, %d batches sent again", rounds, time.Since(start), p.Stats().Retries)
			want = append(want, texts(b.numbered(topic, "tx", 10))...)
			slices.Sort(want)
			require.Equal(t, want, b.committed(t, topic))
		})
	}
}

// What is cut off in the middle is finished all the same.
func TestKafkaTransactionsThroughCutConnections(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, mode := range txnModes {
		t.Run(mode.name, func(t *testing.T) {
			b := txnBed(t, cluster, mode.limit, fmt.Sprintf("kbench-test-%d", time.Now().UnixNano()))
			topic := b.topic(t, 3, nil)
			p := b.producer(t)
			var want []string
			for i := range 20 {
				msgs := b.numbered(topic, fmt.Sprintf("tx%d", i), 100)
				require.NoError(t, p.BeginTransaction(b.ctx))
				var out tally
				_, err := p.ProduceRun(b.ctx, msgs, &out)
				require.NoError(t, err)
				cut := make(chan struct{})
				go func() { // ends by itself; awaited below
					defer close(cut)
					for _, n := range b.c.Brokers() {
						if c, err := n.connection(b.ctx); err == nil {
							c.Close(errCutByTest)
						}
					}
				}()
				err = p.CommitTransaction(b.ctx)
				<-cut
				require.NoError(t, err)
				out.require(t, 100, 0)
				want = append(want, texts(msgs)...)
			}
			slices.Sort(want)
			require.Equal(t, want, b.committed(t, topic))
		})
	}
}

var errCutByTest = fmt.Errorf("cut by the test: %w", wire.ErrNetworkException)
