package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// leaderAndFollower are two brokers: the leader, node 0, sends those who name their rack to node 1.
// The reader asks from rack "here".
func leaderAndFollower(t *testing.T, follower *script) (*script, *Reader) {
	srv, err := rawserver.Start(rawserver.Script{Handle: func(req rawserver.Request) rawserver.Reply { return follower.handle("", req) }})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	leader := serve(batchOf(t, shape{base: 0}, values(0, 3)), batchOf(t, shape{base: 3}, values(3, 6)))
	whole := leader.fetch
	leader.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		if raw.Decode().(*kmsg.FetchRequest).Rack == "here" {
			p.PreferredReadReplica = 1
			return nil
		}
		return whole(raw, ask, p)
	}
	leader.more = func(m *kmsg.MetadataResponse) { m.Brokers = append(m.Brokers, brokerAt(1, srv.Addr())) }
	r, _ := leader.start(t, ReaderConfig{}, func(c *Config) {
		c.Consumer.Rack = "here"
		c.Consumer.OutOfRange = "latest" // a reset would lose messages
	})
	return leader, r
}

// C10: whatever is wrong with the replica, reading goes on at the leader, from where it was.
func TestC10BackToTheLeader(t *testing.T) {
	rows := []struct {
		what string
		code int16
	}{
		{"C10: the replica is behind, and does not have the position yet", wire.ErrOffsetOutOfRange.Code},
		{"C10: it does not hold the partition any more", wire.ErrNotLeaderOrFollower.Code},
		{"C10: it does not know the topic", wire.ErrUnknownTopicOrPartition.Code},
		{"C10: it cannot tell its high watermark", wire.ErrOffsetNotAvailable.Code},
		{"C10: its leader epoch is behind", wire.ErrUnknownLeaderEpoch.Code},
		{"C10: its disk has failed", wire.ErrKafkaStorage.Code},
		{"C10: it is of another leader's time", wire.ErrFencedLeaderEpoch.Code},
	}
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) {
			follower := serve(batchOf(t, shape{base: 0}, values(0, 3)))
			whole := follower.fetch
			follower.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
				if ask.FetchOffset == 3 {
					p.ErrorCode = row.code
					return nil
				}
				return whole(raw, ask, p)
			}
			leader, r := leaderAndFollower(t, follower)
			require.Equal(t, []int64{0, 1, 2, 3, 4, 5}, offsets(t, within(t), r, 6))
			require.Zero(t, r.Stats().Resets)
			asked := leader.asked()
			require.Empty(t, asked[len(asked)-1].Rack, "the leader is not asked for another replica at once")
		})
	}
}

// A replica is read from for a while; then the leader is asked again where to read. The session with
// the replica goes on without the partition.
func TestReaderAsksTheLeaderAgain(t *testing.T) {
	follower := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	leader, r := leaderAndFollower(t, follower)
	require.Equal(t, []int64{0, 1, 2}, offsets(t, within(t), r, 3))
	require.Len(t, leader.asked(), 1)
	r.mu.Lock()
	p := r.parts[0]
	require.EqualValues(t, 1, p.replica)
	require.WithinDuration(t, time.Now().Add(replicaFor), p.expires, time.Minute)
	p.expires = time.Now()
	p.src.moveOn = p.expires
	r.mu.Unlock()
	require.Eventually(t, func() bool { return len(leader.asked()) == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "here", leader.asked()[1].Rack)
	n := len(follower.asked())
	require.Eventually(t, func() bool { return len(follower.asked()) > n }, 10*time.Second, time.Millisecond, "which names it again")
	require.Zero(t, r.Stats().Errors)
}
