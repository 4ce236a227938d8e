package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// everyRequest makes a client of the given version setting send every kind of request that it has to a
// cluster, and checks what comes of it. Both together are as old as release.
func everyRequest(t *testing.T, k *broker.Cluster, version, release Version) {
	ctx := within(t)
	cfg := quickConfig()
	cfg.Version, cfg.Producer.Idempotent, cfg.Producer.Compression = version, true, record.ZSTD
	cfg.Consumer.Group.HeartbeatInterval = 20 * time.Millisecond
	c, err := NewClient(k.Bootstrap(), cfg)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.CreateTopics(ctx, TopicSpec{Name: "made", Partitions: 2, ReplicationFactor: 1}))
	_, err = c.TopicConfig(ctx, "made")
	require.NoError(t, err)
	p, err := NewAsyncProducerFromClient(c)
	require.NoError(t, err)
	var out tally
	run := numbered(200, 10)
	for _, m := range run {
		m.Topic = "made"
	}
	_, err = p.ProduceRun(ctx, run, &out)
	require.NoError(t, err)
	require.NoError(t, p.Close(ctx))
	out.require(t, len(run), 0)
	r, err := c.NewReader(ReaderConfig{Topic: "made", Partitions: []int32{0, 1}})
	require.NoError(t, err)
	seen := map[string]bool{}
	for range run {
		m, err := r.FetchMessage(ctx)
		require.NoError(t, err)
		seen[string(m.Value)] = true
	}
	require.NoError(t, r.Close())
	require.Len(t, seen, len(run))
	at, err := c.GetOffset(ctx, "made", 0, OffsetNewest)
	require.NoError(t, err)
	require.Positive(t, at)
	committed, err := c.CommittedOffsets(ctx, "g", "made", 0, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{-1, -1}, committed)
	everyRequestOfAGroup(t, k, c, release, len(run))
	require.NoError(t, c.DeleteTopics(ctx, "made"))
}

// everyRequestOfAGroup is that of a member of group "g", which reads and commits topic "made", and of a
// transaction with its offsets.
func everyRequestOfAGroup(t *testing.T, k *broker.Cluster, c *Client, release Version, messages int) {
	ctx := within(t)
	member, err := c.NewReader(ReaderConfig{Topic: "made", GroupID: "g", GroupProtocol: protocolClassic})
	require.NoError(t, err)
	ends := map[int32]int64{}
	for range messages {
		m, err := member.FetchMessage(ctx)
		require.NoError(t, err)
		require.NoError(t, member.CommitMessages(ctx, m))
		ends[m.Partition] = m.Offset + 1
	}
	require.NoError(t, k.AwaitRequests(ctx, int16(kmsg.Heartbeat), 1))
	requireCommitted := func() {
		committed, err := c.CommittedOffsets(ctx, "g", "made", 0, 1)
		require.NoError(t, err)
		require.Equal(t, []int64{ends[0], ends[1]}, committed)
	}
	requireCommitted()

	cfg := c.Config()
	cfg.Producer.Transaction.ID = "x"
	p, err := NewAsyncProducer(k.Bootstrap(), &cfg)
	require.NoError(t, err)
	require.NoError(t, p.BeginTransaction(ctx))
	var out tally
	_, err = p.ProduceRun(ctx, []*ProducerMessage{{Topic: "made", Key: []byte("k")}}, &out)
	require.NoError(t, err)
	ends[0]++
	who := member.GroupMetadata()
	if release.before(2, 5) { // KIP-447
		who = GroupMetadata{GroupID: "g"}
	}
	require.NoError(t, p.SendOffsetsToTransaction(ctx, []GroupOffset{{Topic: "made", Partition: 0, Offset: ends[0]}}, who))
	require.NoError(t, p.CommitTransaction(ctx))
	require.NoError(t, p.Close(ctx))
	out.require(t, 1, 0)
	requireCommitted()
	require.NoError(t, member.Close())
}

// Old brokers, and the version setting: what goes over the wire is the same, whichever of the two
// is old.
func TestEveryReleaseIsSpokenTo(t *testing.T) {
	for _, release := range []struct {
		name string
		cap  Version
	}{
		{"2.1", Version{2, 1}}, {"2.2", Version{2, 2}}, {"2.3", Version{2, 3}}, {"2.4", Version{2, 4}},
		{"2.5", Version{2, 5}}, {"2.6", Version{2, 6}}, {"2.7", Version{2, 7}}, {"2.8", Version{2, 8}},
		{"3.0", Version{3, 0}}, {"3.1", Version{3, 1}}, {"3.2", Version{3, 2}}, {"3.3", Version{3, 3}},
		{"3.4", Version{3, 4}}, {"3.5", Version{3, 5}}, {"3.6", Version{3, 6}}, {"3.7", Version{3, 7}},
		{"3.8", Version{3, 8}}, {"3.9", Version{3, 9}}, {"4.0", Version{4, 0}},
	} {
		t.Run(release.name, func(t *testing.T) {
			sent := func(broke string, limit Version) map[int16][]int16 {
				k, err := broker.Start(broker.Options{Version: broke})
				require.NoError(t, err)
				defer k.Close()
				everyRequest(t, k, limit, release.cap)
				requireVersions(t, k)
				versions := k.Versions()
				delete(versions, int16(kmsg.ApiVersions)) // comes before anything is known
				return versions
			}
			byOldBroker, byCap := sent(release.name, Version{}), sent("", release.cap)
			require.Equal(t, byOldBroker, byCap)
			for key, versions := range byCap {
				require.Len(t, versions, 1, "%s was sent in several versions", kmsg.NameForKey(key))
			}
		})
	}
}

// M11: a clear error when there is no common version, at once, and nothing is sent.
func TestM11NoCommonVersionIsSaidAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		caps map[int16]int16
		says string
	}{
		{"a broker that is too old", map[int16]int16{int16(kmsg.Produce): 2}, "no common version of Produce: we speak 3–12, broker 127.0.0.1:"},
		{"a broker without the request", map[int16]int16{int16(kmsg.Produce): -1}, "does not know Produce requests"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, err := broker.Start(broker.Options{VersionCaps: tc.caps, Topics: []broker.Topic{{Name: "t", Partitions: 1}}})
			require.NoError(t, err)
			t.Cleanup(k.Close)
			p := asyncProducer(t, k, quickConfig())
			var out tally
			began := time.Now()
			_, err = p.ProduceRun(within(t), numbered(10, 1), &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			require.Less(t, time.Since(began), 5*time.Second, "not retried until the delivery timeout")
			out.require(t, 0, 10)
			var version *wire.VersionError
			require.ErrorAs(t, out.errs[0], &version)
			require.ErrorContains(t, out.errs[0], tc.says)
			require.NotErrorIs(t, out.errs[0], ErrRetriesExhausted)
			require.Zero(t, k.Requests(int16(kmsg.Produce)))
		})
	}
}

// M13: zstd needs Produce 7; before, brokers store or refuse what they do not understand.
func TestM13ZstdIsRefusedBeforeSendingToOldBrokers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		produce int16 // the broker's newest version
		codec   record.Codec
		fits    bool
	}{
		{"zstd, one version too old", 6, record.ZSTD, false},
		{"zstd, the first version with it", 7, record.ZSTD, true},
		{"lz4 is older than any version spoken", 6, record.LZ4, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, err := broker.Start(broker.Options{
				VersionCaps: map[int16]int16{int16(kmsg.Produce): tc.produce}, Topics: []broker.Topic{{Name: "t", Partitions: 1}},
			})
			require.NoError(t, err)
			t.Cleanup(k.Close)
			cfg := quickConfig()
			cfg.Producer.Compression = tc.codec
			p := asyncProducer(t, k, cfg)
			var out tally
			_, err = p.ProduceRun(within(t), numbered(50, 1), &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			if tc.fits {
				out.require(t, 50, 0)
				return
			}
			out.require(t, 0, 50)
			var codec *UnsupportedCodecError
			require.ErrorAs(t, out.errs[0], &codec)
			require.ErrorContains(t, out.errs[0], "producer.compression=zstd needs Produce requests of version 7 or later")
			require.ErrorContains(t, out.errs[0], "allows 6")
			require.NotErrorIs(t, out.errs[0], ErrOutcomeUnknown)
			require.Zero(t, k.Requests(int16(kmsg.Produce)), "nothing was sent")
		})
	}
}
