//go:build kafka

package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// The newest Kafka and the last before 4: every way of sending, every codec, reading, and what a run
// asks of a cluster. (Older ones are played by the embedded broker: TestEveryReleaseIsSpokenTo.)
func TestKafkaReleases(t *testing.T) {
	newest := map[string]map[int16]int16{ // what each sends at most, by request key
		"4.4": {0: 12, 1: 18, 2: 10, 3: 13, 9: 9, 10: 5, 19: 7, 20: 5, 22: 5, 32: 4},
		"3.9": {0: 11, 1: 17, 2: 9, 3: 12, 9: 9, 10: 5, 19: 7, 20: 5, 22: 5, 32: 4},
	}
	for _, release := range kafkatest.Releases(t) {
		t.Run(release.Name, func(t *testing.T) {
			b := newRealBed(t, release.Cluster, nil)
			guessed, err := b.c.Brokers()[0].GuessVersion(b.ctx)
			require.NoError(t, err)
			require.Contains(t, map[string][]string{"4.4": {"4.1+"}, "3.9": {"3.9+"}}[release.Name], guessed)
			for i, codec := range record.Codecs() {
				for _, promise := range []struct {
					acks       RequiredAcks
					idempotent bool
				}{{AcksAll, true}, {AcksLeader, false}, {AcksNone, false}} {
					form := []string{"run", "callback", "channels"}[i%3]
					t.Run(fmt.Sprintf("%s, acks %v, idempotent %v, %s", codec, promise.acks, promise.idempotent, form), func(t *testing.T) {
						requireSentAndRead(t, b, release.Cluster, form, func(c *Config) {
							c.Producer.Compression, c.Producer.RequiredAcks, c.Producer.Idempotent = codec, promise.acks, promise.idempotent
						})
					})
				}
			}
			t.Run("what a run asks of a cluster", func(t *testing.T) { requireAdministration(t, b) })
			for key, version := range newest[release.Name] { // needs all of the tests above
				require.Equal(t, []int16{version}, b.sent.of(key), "versions of %s", kmsg.NameForKey(key))
			}
			for kv := range b.sent.seen {
				require.False(t, wire.Dropped(kv[0], kv[1]), "M11: %s %d", kmsg.NameForKey(kv[0]), kv[1])
			}
		})
	}
}

// requireSentAndRead sends samples to a topic of their own and reads them back.
func requireSentAndRead(t *testing.T, admin *realBed, cluster *kafkatest.Cluster, form string, change func(*Config)) {
	const each = 300
	topic := admin.topic(t, 3, nil)
	b := newRealBed(t, cluster, func(c *Config) {
		change(c)
		c.Producer.Flush.MaxMessages, c.Producer.Return.Successes = 20, true
		c.Net.Dialer = admin.sent.dial
	})
	p, err := NewAsyncProducerFromClient(b.c)
	require.NoError(t, err)
	msgs := samples(topic, 0, each)
	realSend(t, b.ctx, p, form, msgs)
	require.NoError(t, p.Close(b.ctx))
	requireSamples(t, topic, b.readBack(t, topic, each), msgs)
	m := p.Metrics().Overall
	require.EqualValues(t, each, m.RecordsPerRequest.Sum)
	require.Zero(t, m.InFlight)
	require.Zero(t, m.Request("Produce").Lost)
	if b.cfg.Producer.RequiredAcks == AcksNone {
		require.Zero(t, m.Request("Produce").Latency.Count())
	} else {
		require.Equal(t, m.Request("Produce").RequestBytes.Count, m.Request("Produce").Latency.Count())
	}
}

// requireAdministration makes, describes, measures and deletes topics, and looks for offsets.
func requireAdministration(t *testing.T, b *realBed) {
	topic := b.topic(t, 2, map[string]string{"max.message.bytes": "54321"})
	limit, err := b.c.MaxMessageBytes(b.ctx, topic)
	require.NoError(t, err)
	require.Equal(t, 54321, limit)
	p, err := NewSyncProducerFromClient(b.c)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(b.ctx)) }()
	middle := time.Now().Truncate(time.Millisecond).Add(-time.Hour)
	for i := range 5 {
		_, at, err := p.SendMessage(&ProducerMessage{Topic: topic, Key: []byte("k"), Timestamp: middle.Add(time.Duration(i-2) * time.Minute)})
		require.NoError(t, err)
		require.EqualValues(t, i, at)
	}
	partition := partitionInUse(t, b, topic)
	for when, want := range map[int64]int64{OffsetOldest: 0, OffsetNewest: 5, middle.UnixMilli(): 2, time.Now().UnixMilli(): -1} {
		at, err := b.c.GetOffset(b.ctx, topic, partition, when)
		require.NoError(t, err)
		require.Equal(t, want, at)
	}
	group := fmt.Sprintf("kbench-test-%d", time.Now().UnixNano())
	coordinator, err := b.c.Coordinator(b.ctx, group)
	require.NoError(t, err)
	require.Contains(t, b.c.Brokers(), coordinator)
	committed, err := b.c.CommittedOffsets(b.ctx, group, topic, 0, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{-1, -1}, committed, "the group has committed nothing")
	controller, err := b.c.Controller(b.ctx)
	require.NoError(t, err)
	require.True(t, controller.Connected())
}

// partitionInUse is the partition that holds the messages.
func partitionInUse(t *testing.T, b *realBed, topic string) int32 {
	for partition := range int32(2) {
		at, err := b.c.GetOffset(b.ctx, topic, partition, OffsetNewest)
		require.NoError(t, err)
		if at > 0 {
			return partition
		}
	}
	require.FailNow(t, "no partition holds a message")
	return -1
}
