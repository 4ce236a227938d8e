//go:build kafka

package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// realPatience bounds what must happen on a real cluster, on a busy machine.
const realPatience = 5 * time.Minute

// realBed is a real cluster and a client of it.
type realBed struct {
	*kafkatest.Cluster
	c    *Client
	cfg  *Config
	ctx  context.Context
	sent *sentVersions
}

func newRealBed(t *testing.T, cluster *kafkatest.Cluster, change func(*Config)) *realBed {
	b := &realBed{Cluster: cluster, cfg: NewConfig(), sent: &sentVersions{seen: map[[2]int16]bool{}}}
	b.cfg.Net.Dialer = b.sent.dial
	if change != nil {
		change(b.cfg)
	}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), realPatience)
	t.Cleanup(cancel)
	var err error
	b.c, err = NewClientContext(b.ctx, cluster.Bootstrap, b.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.c.Close() })
	return b
}

// topic makes a topic for this test, on all nodes.
func (b *realBed) topic(t *testing.T, partitions int32, config map[string]string) string {
	name := fmt.Sprintf("kbench-test-%d", time.Now().UnixNano())
	b.create(t, name, partitions, config)
	return name
}

func (b *realBed) create(t *testing.T, name string, partitions int32, config map[string]string) {
	require.NoError(t, b.c.CreateTopics(b.ctx, TopicSpec{
		Name: name, Partitions: partitions, ReplicationFactor: int16(len(b.Bootstrap)), Config: lasting(config),
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own may be over
		defer cancel()
		require.NoError(t, b.c.DeleteTopics(ctx, name))
	})
}

// lasting is the settings of a topic that keeps its messages whatever time they bear, unless config
// says otherwise: tests give them times of years ago, and a node looks half a minute after it started
// for what is past its retention.
func lasting(config map[string]string) map[string]string {
	kept := map[string]string{"retention.ms": "-1"}
	maps.Copy(kept, config)
	return kept
}

// sentVersions notes which version of which request went over the wire.
type sentVersions struct {
	mu   sync.Mutex
	seen map[[2]int16]bool
}

func (s *sentVersions) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: c, to: s}, nil
}

// of lists the versions of a request that were sent.
func (s *sentVersions) of(key int16) (versions []int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kv := range s.seen {
		if kv[0] == key {
			versions = append(versions, kv[1])
		}
	}
	slices.Sort(versions)
	return versions
}

// sniffed takes apart the frames written: their length, then the request's key and version.
type sniffed struct {
	net.Conn
	to   *sentVersions
	head []byte
	skip int // bytes left of the frame
}

func (c *sniffed) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if n := min(c.skip, len(rest)); n > 0 {
			c.skip -= n
			rest = rest[n:]
			continue
		}
		n := min(8-len(c.head), len(rest))
		c.head = append(c.head, rest[:n]...)
		rest = rest[n:]
		if len(c.head) == 8 {
			c.to.note(int16(binary.BigEndian.Uint16(c.head[4:])), int16(binary.BigEndian.Uint16(c.head[6:])))
			c.skip = int(binary.BigEndian.Uint32(c.head)) - 4
			c.head = c.head[:0]
		}
	}
	return c.Conn.Write(p)
}

func (s *sentVersions) note(key, version int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[[2]int16{key, version}] = true
}

// Requests are as new as both sides know, or as old as asked for.
func TestKafkaRequestVersions(t *testing.T) {
	cluster := kafkatest.Shared(t, 1)
	for _, tc := range []struct {
		name string
		cap  Version
		want map[int16]int16 // request key to the only version sent
	}{
		{"M12: the newest of both sides", Version{}, map[int16]int16{0: 12, 1: 18, 2: 10, 3: 13, 19: 7, 20: 5}},
		{"as Kafka 2.8 knows them", Version{2, 8}, map[int16]int16{0: 9, 1: 12, 2: 6, 3: 11, 19: 7, 20: 5}},
		{"as Kafka 2.1 knows them", Version{2, 1}, map[int16]int16{0: 7, 1: 10, 2: 4, 3: 7, 19: 3, 20: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newRealBed(t, cluster, func(c *Config) { c.Version = tc.cap })
			name := fmt.Sprintf("kbench-test-%d", time.Now().UnixNano())
			require.NoError(t, b.c.CreateTopics(b.ctx, TopicSpec{Name: name, Partitions: 2, ReplicationFactor: 1}))
			p, err := NewAsyncProducerFromClient(b.c)
			require.NoError(t, err)
			want := samples(name, 0, 500)
			realSend(t, b.ctx, p, "run", want)
			require.NoError(t, p.Close(b.ctx))
			got := b.readBack(t, name, len(want))
			requireSamples(t, name, got, want)
			_, err = b.c.ListOffsets(b.ctx, ReadUncommitted, OffsetQuery{Topic: name, Partition: 1, Time: OffsetNewest})
			require.NoError(t, err)
			require.NoError(t, b.c.DeleteTopics(b.ctx, name))
			for key, version := range tc.want {
				require.Equal(t, []int16{version}, b.sent.of(key), "versions of request %d", key)
			}
		})
	}
}

func TestKafkaTopicsAreMadeDescribedAndDeleted(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 3), nil)
	spec := TopicSpec{
		Name: fmt.Sprintf("kbench-test-%d", time.Now().UnixNano()), Partitions: 12, ReplicationFactor: 3,
		Config: map[string]string{"min.insync.replicas": "2", "max.message.bytes": "123456", "retention.ms": "600000"},
	}
	require.NoError(t, b.c.CreateTopics(b.ctx, spec))
	d, err := b.c.DescribeTopic(b.ctx, spec.Name)
	require.NoError(t, err)
	require.Len(t, d.Leaders, 12)
	leads := map[int32]int{}
	for p, leader := range d.Leaders {
		leads[leader]++
		require.ElementsMatch(t, []int32{1, 2, 3}, d.Replicas[p])
		require.Contains(t, d.ISR[p], leader)
	}
	require.Equal(t, map[int32]int{1: 4, 2: 4, 3: 4}, leads, "leaders are dealt out evenly")
	cfg, err := b.c.TopicConfig(b.ctx, spec.Name)
	require.NoError(t, err)
	for key, value := range spec.Config {
		require.Equal(t, value, cfg[key], key)
	}
	limit, err := b.c.MaxMessageBytes(b.ctx, spec.Name)
	require.NoError(t, err)
	require.Equal(t, 123456, limit)
	all, err := b.c.Topics(b.ctx)
	require.NoError(t, err)
	require.Contains(t, all, spec.Name)

	err = b.c.CreateTopics(b.ctx, spec)
	require.ErrorIs(t, err, wire.ErrTopicAlreadyExists)
	require.ErrorContains(t, err, spec.Name)

	require.NoError(t, b.c.DeleteTopics(b.ctx, spec.Name))
	require.NoError(t, b.c.DeleteTopics(b.ctx, spec.Name), "one that is gone is no error")
	require.Eventually(t, func() bool { // every node has to hear of it
		all, err = b.c.Topics(b.ctx)
		return err == nil && !slices.Contains(all, spec.Name)
	}, realPatience, 100*time.Millisecond)
	require.Len(t, b.c.Brokers(), 3)
	require.NotEmpty(t, b.c.ClusterID())
}

func TestKafkaRefusedTopicsSayWhy(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), nil)
	for _, tc := range []struct {
		name string
		spec TopicSpec
		want error
	}{
		{"more replicas than nodes", TopicSpec{Name: "kbench-test-replicas", Partitions: 1, ReplicationFactor: 3}, wire.ErrInvalidReplicationFactor},
		{"a name that is none", TopicSpec{Name: "a/b", Partitions: 1, ReplicationFactor: 1}, wire.ErrInvalidTopic},
		{"no partitions", TopicSpec{Name: "kbench-test-partitions", ReplicationFactor: 1}, wire.ErrInvalidPartitions},
		{"an unknown setting", TopicSpec{
			Name: "kbench-test-setting", Partitions: 1, ReplicationFactor: 1, Config: map[string]string{"no.such": "1"},
		}, wire.ErrInvalidConfig},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			err := b.c.CreateTopics(b.ctx, tc.spec)
			require.ErrorIs(t, err, tc.want)
			require.ErrorContains(t, err, tc.spec.Name)
			require.Less(t, time.Since(start), b.cfg.Admin.Timeout/2, "not retried")
		})
	}
}
