package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

func TestTopicsAreCreatedDescribedAndDeleted(t *testing.T) {
	c := cluster(t, 3, 1)
	cl, err := NewClient(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	require.NoError(t, cl.CreateTopics(within(t),
		TopicSpec{Name: "a", Partitions: 4, ReplicationFactor: 3, Config: map[string]string{"max.message.bytes": "5000"}},
		TopicSpec{Name: "b", Partitions: 1, ReplicationFactor: 1}))
	err = cl.CreateTopics(within(t), TopicSpec{Name: "a", Partitions: 1, ReplicationFactor: 1})
	require.ErrorIs(t, err, wire.ErrTopicAlreadyExists)
	require.ErrorContains(t, err, `"a"`, "the error names the topic")
	d, err := cl.DescribeTopic(within(t), "a")
	require.NoError(t, err)
	require.Len(t, d.Leaders, 4)
	require.Len(t, d.Replicas[0], 3)
	n, err := cl.MaxMessageBytes(within(t), "a")
	require.NoError(t, err)
	require.Equal(t, 5000, n)
	names, err := cl.Topics(within(t))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "t"}, names)
	require.NoError(t, cl.DeleteTopics(within(t), "a", "b", "never-there"))
	names, err = cl.Topics(within(t))
	require.NoError(t, err)
	require.Equal(t, []string{"t"}, names)
}

// Brokers tell of a topic before they take its messages; with acks=0 what comes too early is lost.
func TestCreateTopicsWaitsUntilLeadersServe(t *testing.T) {
	c := cluster(t, 1, 1)
	cl, err := NewClient(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	const listOffsets, unknownTopic, topicAuthorization = 2, 3, 29

	f := c.Fail(broker.Failure{Key: listOffsets, Code: unknownTopic, Count: 20})
	require.NoError(t, cl.CreateTopics(within(t), TopicSpec{Name: "a", Partitions: 3, ReplicationFactor: 1}))
	require.Equal(t, 20, f.Hits(), "longer than one look-up of offsets retries")

	f = c.Fail(broker.Failure{Key: listOffsets, Code: topicAuthorization, Count: -1})
	start := time.Now()
	err = cl.CreateTopics(within(t), TopicSpec{Name: "b", Partitions: 3, ReplicationFactor: 1})
	require.ErrorIs(t, err, wire.ErrTopicAuthorizationFailed, "what waiting cannot mend is told")
	require.Less(t, time.Since(start), patience/2)
	f.Remove()
}

func TestLeadersAreMoved(t *testing.T) {
	c := cluster(t, 2, 3)
	cl, err := NewClient(c.Bootstrap(), quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	before := c.Leader("t", 1)
	from, now, err := cl.MoveLeader(within(t), "t", 1, -1)
	require.NoError(t, err)
	require.Equal(t, []int32{before, 1 - before}, []int32{from, now})
	require.Equal(t, now, c.Leader("t", 1))
	_, back, err := cl.MoveLeader(within(t), "t", 1, before)
	require.NoError(t, err)
	require.Equal(t, before, back)
	for partition, to := range map[int32]int32{9: -1, -1: -1, 0: 7, 1: before} {
		_, _, err := cl.MoveLeader(within(t), "t", partition, to)
		require.ErrorContains(t, err, "moving the leader of topic", "partition %d to %d", partition, to)
	}
	for _, tc := range []struct {
		sentence         string
		replicas, inSync []int32
		leader, to       int32
		want             []int32
		says             string
	}{
		{"the next one", []int32{1, 2, 3}, []int32{1, 2, 3}, 1, -1, []int32{2, 1, 3}, ""},
		{"round the end", []int32{1, 2, 3}, []int32{1, 2, 3}, 3, -1, []int32{1, 2, 3}, ""},
		{"past one that is not in sync", []int32{1, 2, 3}, []int32{1, 3}, 1, -1, []int32{3, 1, 2}, ""},
		{"the one named", []int32{1, 2, 3}, []int32{1, 2, 3}, 1, 3, []int32{3, 1, 2}, ""},
		{"without a leader any other", []int32{1, 2}, []int32{2}, -1, -1, []int32{2, 1}, ""},
		{"the one named is behind", []int32{1, 2, 3}, []int32{1, 2}, 1, 3, nil, "in sync"},
		{"nobody else is in sync", []int32{1, 2, 3}, []int32{1}, 1, -1, nil, "in sync"},
		{"no other replica", []int32{1}, []int32{1}, 1, -1, nil, "one replica"},
	} {
		got, err := reordered(tc.replicas, tc.inSync, tc.leader, tc.to)
		require.Equal(t, tc.want, got, tc.sentence)
		if tc.says != "" {
			require.ErrorContains(t, err, tc.says, tc.sentence)
		}
	}
}
