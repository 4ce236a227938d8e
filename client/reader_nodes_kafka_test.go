//go:build kafka

package client

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// fetchedFrom counts Fetch requests by broker, and the bytes of the answers.
type fetchedFrom struct {
	mu    sync.Mutex
	count map[int32]int
	bytes []int
}

func (f *fetchedFrom) note(st FetchStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if st.Err == nil {
		f.count[st.Broker]++
		f.bytes = append(f.bytes, st.Bytes)
	}
}

func (f *fetchedFrom) of(broker int32) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[broker]
}

func (f *fetchedFrom) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bytes)
}

func (b *realBed) put(t *testing.T, topic string, from, to int) {
	require.NoError(t, b.c.RefreshMetadata(b.ctx, topic)) // of leaders that were killed nothing is known otherwise
	kafkaPut(t, b.ctx, b.c, topic, 0, "", encode(t, record.None, record.NoProducer, values(from, to)))
}

func (b *realBed) expect(t *testing.T, r *Reader, from, to int) {
	for i := from; i < to; i++ {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("value %d", i), string(m.Value))
	}
}

// C10: a reader that names its rack reads from the replica there (KIP-392), and from the leader when
// the replica is stopped; nothing is lost, repeated or reset.
func TestKafkaC10ReadsFromTheReplicaInItsRack(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Exclusive(t, 3)
	b := newRealBed(t, cluster, nil)
	name := b.topic(t, 1, nil)
	leader, err := b.c.Leader(b.ctx, name, 0)
	require.NoError(t, err)
	near := leader.ID()%3 + 1 // the nodes are 1 to 3
	far := newRealBed(t, cluster, func(c *Config) { c.Consumer.Rack = fmt.Sprintf("rack-%d", near) })
	f := &fetchedFrom{count: map[int32]int{}}
	r, err := far.c.NewReader(ReaderConfig{Topic: name, OnFetch: f.note})
	require.NoError(t, err)
	defer r.Close()
	b.put(t, name, 0, 100)
	b.expect(t, r, 0, 100)
	// A replica is named once it has caught up; what was read before came from the leader.
	n := 100
	require.Eventually(t, func() bool {
		b.put(t, name, n, n+10)
		b.expect(t, r, n, n+10)
		n += 10
		return f.of(near) > 3
	}, realPatience, 10*time.Millisecond)
	fromLeader := f.of(leader.ID())
	b.put(t, name, n, n+10)
	b.expect(t, r, n, n+10)
	n += 10
	require.Equal(t, fromLeader, f.of(leader.ID()), "the leader is not asked any more")

	node := fmt.Sprint(near)
	t.Cleanup(func() { _, _ = b.TryScript("start", node) })
	b.Script(t, "kill9", node)
	b.put(t, name, n, n+10)
	b.expect(t, r, n, n+10)
	require.Greater(t, f.of(leader.ID()), fromLeader, "back at the leader")
	require.Zero(t, r.Stats().Resets)
}

// KIP-320: the only replica in sync is killed, and the other one, which has half of the log, becomes
// the leader. The reader, which had read all of it, says where the logs part, or goes on from there.
func TestKafkaLogIsTruncated(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Exclusive(t, 3)
	b := newRealBed(t, cluster, nil)
	name := fmt.Sprintf("kbench-test-%d", time.Now().UnixNano())
	require.NoError(t, b.c.CreateTopics(b.ctx, TopicSpec{Name: name, Partitions: 1, ReplicationFactor: 2, Config: lasting(map[string]string{
		"min.insync.replicas": "1", "unclean.leader.election.enable": "true",
	})}))
	t.Cleanup(func() { _ = b.c.DeleteTopics(b.ctx, name) })
	b.put(t, name, 0, 50)
	leader, err := b.c.Leader(b.ctx, name, 0)
	require.NoError(t, err)
	replicas, err := b.c.Replicas(b.ctx, name, 0)
	require.NoError(t, err)
	other := replicas[0]
	if other == leader.ID() {
		other = replicas[1]
	}
	behind, ahead := fmt.Sprint(other), fmt.Sprint(leader.ID())
	t.Cleanup(func() {
		_, _ = b.TryScript("start", behind)
		_, _ = b.TryScript("start", ahead)
	})
	b.Script(t, "stop", behind)
	b.awaitTopic(t, name, func(d TopicDescription) bool { return len(d.ISR[0]) == 1 })
	b.put(t, name, 50, 100)

	var readers []*Reader
	for _, policy := range []string{"error", "earliest"} {
		bed := newRealBed(t, cluster, func(c *Config) { c.Consumer.OutOfRange = policy })
		r, err := bed.c.NewReader(ReaderConfig{Topic: name})
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		b.expect(t, r, 0, 100)
		readers = append(readers, r)
	}
	b.Script(t, "kill9", ahead)
	b.Script(t, "start", behind)
	b.awaitTopic(t, name, func(d TopicDescription) bool { return d.Leaders[0] == other })
	b.put(t, name, 1050, 1070)

	_, err = readers[0].FetchMessage(b.ctx)
	var truncated *LogTruncatedError
	require.True(t, errors.As(err, &truncated), "%v", err)
	require.EqualValues(t, 100, truncated.Offset)
	require.EqualValues(t, 50, truncated.End)
	b.expect(t, readers[1], 1050, 1070)
	require.EqualValues(t, 1, readers[1].Stats().Resets)
	require.NoError(t, readers[0].SetOffset(60))
	b.expect(t, readers[0], 1060, 1070)
}

// A hundred partitions that stand still cost a few bytes a request; one that moves is named alone.
func TestKafkaFetchSession(t *testing.T) {
	for _, release := range kafkatest.Releases(t) {
		t.Run(release.Name, func(t *testing.T) {
			b := newRealBed(t, release.Cluster, func(c *Config) { c.Consumer.MaxWait = 100 * time.Millisecond })
			name := b.topic(t, 100, nil)
			ids, err := b.c.Partitions(b.ctx, name)
			require.NoError(t, err)
			f := &fetchedFrom{count: map[int32]int{}}
			r, err := b.c.NewReader(ReaderConfig{Topic: name, Partitions: ids, OnFetch: f.note})
			require.NoError(t, err)
			defer r.Close()
			require.Eventually(t, func() bool {
				sizes := f.sizes()
				return len(sizes) > 8 && slices.Max(sizes[len(sizes)-5:]) < 50
			}, realPatience, 10*time.Millisecond)
			for i := range 5 {
				b.put(t, name, i, i+1)
				b.expect(t, r, i, i+1)
			}
			settled := len(f.sizes())
			require.Eventually(t, func() bool { return len(f.sizes()) > settled+3 }, realPatience, 10*time.Millisecond)
			for _, size := range f.sizes()[settled+1:] {
				require.Less(t, size, 50)
			}
			require.Zero(t, r.Stats().Errors)
			require.Len(t, b.sent.of(1), 1, "one version all along")
		})
	}
}

// M6: a topic that was deleted and made again, on real Kafka.
func TestKafkaM6ReaderOfATopicMadeAgain(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), func(c *Config) {
		c.Consumer.OutOfRange = "earliest"
	})
	name := b.topic(t, 1, nil)
	b.put(t, name, 0, 20)
	r, err := b.c.NewReader(ReaderConfig{Topic: name})
	require.NoError(t, err)
	defer r.Close()
	b.expect(t, r, 0, 20)
	require.NoError(t, b.c.DeleteTopics(b.ctx, name))
	require.Eventually(t, func() bool {
		return b.c.CreateTopics(b.ctx, TopicSpec{Name: name, Partitions: 1, ReplicationFactor: 1, Config: lasting(nil)}) == nil
	}, realPatience, 50*time.Millisecond, "the deletion has ended")
	b.put(t, name, 1000, 1030)
	b.expect(t, r, 1000, 1030)
	require.EqualValues(t, 1, r.Stats().Resets)
}
