package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
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
