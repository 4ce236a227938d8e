//go:build kafka

package client

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// kafkaBed is a client of a real cluster that nobody disturbs, and a fresh topic in it.
func kafkaBed(t *testing.T, nodes int, partitions int32, topicConfig map[string]string, change func(*Config)) (*Client, string, context.Context) {
	cluster := kafkatest.Shared(t, nodes)
	cfg := NewConfig()
	if change != nil {
		change(cfg)
	}
	c, err := NewClient(cluster.Bootstrap, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	topic := fmt.Sprintf("kbench-reader-%d", time.Now().UnixNano())
	require.NoError(t, c.CreateTopics(ctx, TopicSpec{
		Name: topic, Partitions: partitions, ReplicationFactor: int16(len(c.Brokers())), Config: lasting(topicConfig),
	}))
	t.Cleanup(func() {
		require.NoError(t, c.DeleteTopics(ctx, topic))
		_ = c.Close()
		cancel()
	})
	return c, topic, ctx
}

// kafkaPut writes one batch; txn is the transactional id, empty for none.
func kafkaPut(t *testing.T, ctx context.Context, c *Client, topic string, partition int32, txn string, raw []byte) {
	for {
		leader, err := c.Leader(ctx, topic, partition)
		require.NoError(t, err)
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 10_000
		if txn != "" {
			req.TransactionID = &txn
		}
		rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = partition, raw
		rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := leader.Request(ctx, req)
		require.NoError(t, err)
		err = wire.ErrorFor(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
		if err == nil {
			return
		}
		require.True(t, wire.Classify(err).Has(wire.Retriable), err)
		require.NoError(t, c.RefreshMetadata(ctx, topic))
	}
}

func kafkaMessages(from, to int) []msg {
	msgs := values(from, to)
	for i := range msgs {
		msgs[i].key = fmt.Appendf(nil, "key %d", from+i)
		msgs[i].value = []byte(strings.Repeat(string(msgs[i].value)+" ", 20))
		msgs[i].at = time.Now().UnixMilli()
		if i%3 == 0 {
			msgs[i].headers = []Header{{Key: "h", Value: []byte{}}, {Key: "n"}}
		}
	}
	return msgs
}

func kafkaExpect(t *testing.T, ctx context.Context, r *Reader, want []msg) {
	for i, w := range want {
		m, err := r.FetchMessage(ctx)
		require.NoError(t, err)
		require.EqualValues(t, i, m.Offset)
		require.Equal(t, string(w.key), string(m.Key))
		require.Equal(t, string(w.value), string(m.Value))
		require.Equal(t, w.headers, m.Headers)
		require.Equal(t, w.at, m.Time.UnixMilli())
	}
}

// Brokers recompress what comes in another codec than the topic's: what is read back was encoded
// by Kafka itself. The topic with "producer" keeps our own encoding.
func TestKafkaReadsEveryCodec(t *testing.T) {
	names := map[record.Codec]string{record.None: "uncompressed"}
	for _, codec := range record.Codecs() {
		name := codec.String()
		if other := names[codec]; other != "" {
			name = other
		}
		for _, setting := range []string{name, "producer"} {
			t.Run(codec.String()+" by "+setting, func(t *testing.T) {
				c, topic, ctx := kafkaBed(t, 1, 1, map[string]string{"compression.type": setting}, nil)
				sent := codec
				if setting != "producer" {
					sent = record.Gzip // so that the broker has to recompress
					if codec == record.Gzip {
						sent = record.None
					}
				}
				want := kafkaMessages(0, 600)
				for i := 0; i < len(want); i += 200 {
					kafkaPut(t, ctx, c, topic, 0, "", encode(t, sent, record.NoProducer, want[i:i+200]))
				}
				r, err := c.NewReader(ReaderConfig{Topic: topic})
				require.NoError(t, err)
				defer r.Close()
				kafkaExpect(t, ctx, r, want)
			})
		}
	}
}

func TestKafkaReaderPartitionsAndOffsets(t *testing.T) {
	const partitions, each = 6, 1000
	c, topic, ctx := kafkaBed(t, 3, partitions, nil, func(c *Config) { c.Consumer.MaxPartitionBytes = 4000 })
	var ids []int32
	for p := range int32(partitions) {
		ids = append(ids, p)
		for i := 0; i < each; i += 100 {
			kafkaPut(t, ctx, c, topic, p, "", encode(t, record.LZ4, record.NoProducer, kafkaMessages(i, i+100)))
		}
	}
	r, err := c.NewReader(ReaderConfig{Topic: topic, Partitions: ids})
	require.NoError(t, err)
	defer r.Close()
	next := map[int32]int64{}
	buf := make([]Message, 64)
	for total := 0; total < partitions*each; {
		n, err := r.FetchBatch(ctx, buf)
		require.NoError(t, err)
		for _, m := range buf[:n] {
			require.Equal(t, next[m.Partition], m.Offset)
			require.Equal(t, fmt.Sprintf("key %d", m.Offset), string(m.Key))
			next[m.Partition]++
		}
		total += n
	}
	require.EqualValues(t, 3, r.Stats().Dials)
	require.Zero(t, r.Stats().Errors)
	lag, err := r.ReadLag(ctx)
	require.NoError(t, err)
	require.Zero(t, lag)
	at, err := c.GetOffset(ctx, topic, 5, OffsetNewest)
	require.NoError(t, err)
	require.EqualValues(t, each, at)
	at, err = c.GetOffset(ctx, topic, 5, time.Now().Add(time.Hour).UnixMilli())
	require.NoError(t, err)
	require.EqualValues(t, -1, at)
}

func TestKafkaReaderOutOfRange(t *testing.T) {
	c, topic, ctx := kafkaBed(t, 1, 1, nil, func(c *Config) { c.Consumer.OutOfRange = "earliest" })
	want := kafkaMessages(0, 10)
	kafkaPut(t, ctx, c, topic, 0, "", encode(t, record.None, record.NoProducer, want))
	r, err := c.NewReader(ReaderConfig{Topic: topic, StartOffset: 5000})
	require.NoError(t, err)
	defer r.Close()
	kafkaExpect(t, ctx, r, want)
	require.EqualValues(t, 1, r.Stats().Resets)
}

// A transaction that is aborted is hidden from read_committed, whose position passes it all the
// same; read_uncommitted sees it.
func TestKafkaReadCommitted(t *testing.T) {
	for _, level := range []IsolationLevel{ReadCommitted, ReadUncommitted} {
		c, topic, ctx := kafkaBed(t, 1, 1, nil, func(c *Config) {
			c.Consumer.IsolationLevel = level
			c.Version = Version{3, 9} // transactions as before KIP-890
		})
		txn := &kafkaTxn{t: t, ctx: ctx, c: c, id: "txn-" + topic, topic: topic}
		txn.run(0, 10, true)
		txn.run(10, 20, false)
		kafkaPut(t, ctx, c, topic, 0, "", encode(t, record.None, record.NoProducer, kafkaMessages(20, 25)))
		txn.run(25, 30, true)
		want := []int{0, 10, 20, 30}
		if level == ReadUncommitted {
			want = []int{0, 20, 20, 30}
		}
		r, err := c.NewReader(ReaderConfig{Topic: topic})
		require.NoError(t, err)
		for i := 0; i < len(want); i += 2 {
			for n := want[i]; n < want[i+1]; n++ {
				m, err := r.FetchMessage(ctx)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("key %d", n), string(m.Key))
			}
		}
		// 30 messages and three markers, the last of which is written after the commit was answered.
		require.Eventually(t, func() bool {
			end, err := c.GetOffset(ctx, topic, 0, OffsetNewest)
			return err == nil && end == 33
		}, 20*time.Second, 10*time.Millisecond)
		require.NoError(t, r.Close())
	}
}

// kafkaTxn runs transactions of one batch by the protocol.
type kafkaTxn struct {
	t         *testing.T
	ctx       context.Context
	c         *Client
	id, topic string
	producer  int64
	epoch     int16
	sequence  int32
	ready     bool
}

func (x *kafkaTxn) ask(req kmsg.Request) (resp kmsg.Response) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKey, find.CoordinatorKeys = 1, x.id, []string{x.id}
	b, err := x.c.Controller(x.ctx)
	require.NoError(x.t, err)
	for node := int32(-1); node < 0; {
		got, err := b.Request(x.ctx, find)
		require.NoError(x.t, err)
		if c := got.(*kmsg.FindCoordinatorResponse).Coordinators; len(c) > 0 && c[0].ErrorCode == 0 {
			node = c[0].NodeID
		}
		for _, other := range x.c.Brokers() {
			if other.ID() == node {
				b = other
			}
		}
	}
	resp, err = b.Request(x.ctx, req)
	require.NoError(x.t, err)
	return resp
}

func (x *kafkaTxn) init() {
	for !x.ready {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &x.id, 30_000, -1, -1
		resp := x.ask(req).(*kmsg.InitProducerIDResponse)
		x.ready = resp.ErrorCode == 0
		x.producer, x.epoch = resp.ProducerID, resp.ProducerEpoch
	}
}

func (x *kafkaTxn) run(from, to int, commit bool) {
	x.init()
	for {
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = x.id, x.producer, x.epoch
		topic := kmsg.NewAddPartitionsToTxnRequestTopic()
		topic.Topic, topic.Partitions = x.topic, []int32{0}
		add.Topics = append(add.Topics, topic)
		err := wire.ErrorFor(x.ask(add).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode)
		if err == nil {
			break
		}
		require.True(x.t, wire.Classify(err).Has(wire.Retriable), err)
	}
	a := record.Attributes{ProducerID: x.producer, ProducerEpoch: x.epoch, BaseSequence: x.sequence, Transactional: true, PartitionLeaderEpoch: -1}
	kafkaPut(x.t, x.ctx, x.c, x.topic, 0, x.id, encode(x.t, record.None, a, kafkaMessages(from, to)))
	x.sequence += int32(to - from)
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = x.id, x.producer, x.epoch, commit
	require.NoError(x.t, wire.ErrorFor(x.ask(end).(*kmsg.EndTxnResponse).ErrorCode))
}
