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
