package fetch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

func example() (fetch.Request, *kmsg.FetchRequest) {
	own := fetch.Request{
		MaxWait: 500 * time.Millisecond, MinBytes: 1, MaxBytes: 1 << 20, Isolation: 1, Session: 7, Epoch: 3, Rack: "r1",
		Topics: []fetch.Topic{{Name: "orders", ID: [16]byte{1, 15: 2}, Partitions: []fetch.Asked{
			{Partition: 3, Offset: 1 << 40, LeaderEpoch: 9, LastEpoch: 8, MaxBytes: 4096},
			{Partition: 0, Offset: 0, LeaderEpoch: -1, LastEpoch: -1, MaxBytes: 1},
		}}, {Name: "other"}},
		Forgotten: []fetch.Topic{{Name: "gone", ID: [16]byte{7}, Partitions: []fetch.Asked{{Partition: 2}}}},
	}
	ref := kmsg.NewPtrFetchRequest()
	ref.MaxWaitMillis, ref.MinBytes, ref.MaxBytes, ref.IsolationLevel = 500, 1, 1<<20, 1
	ref.SessionID, ref.SessionEpoch, ref.Rack = 7, 3, "r1"
	for _, t := range own.Topics {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = t.Name, t.ID
		for _, p := range t.Partitions {
			part := kmsg.NewFetchRequestTopicPartition()
			part.Partition, part.FetchOffset, part.PartitionMaxBytes = p.Partition, p.Offset, p.MaxBytes
			part.CurrentLeaderEpoch, part.LastFetchedEpoch = p.LeaderEpoch, p.LastEpoch
			topic.Partitions = append(topic.Partitions, part)
		}
		ref.Topics = append(ref.Topics, topic)
	}
	forgotten := kmsg.NewFetchRequestForgottenTopic()
	forgotten.Topic, forgotten.TopicID, forgotten.Partitions = "gone", [16]byte{7}, []int32{2}
	ref.ForgottenTopics = append(ref.ForgottenTopics, forgotten)
	return own, ref
}

// Every version byte for byte as the generated definitions encode it.
func TestRequestMatchesDefinitions(t *testing.T) {
	own, ref := example()
	for version := int16(4); version <= wire.Versions[fetch.Key].Max; version++ {
		ref.SetVersion(version)
		require.Equal(t, ref.AppendTo(nil), own.Append(nil, version), "version %d", version)
	}
}

func TestRequestAllocatesNothing(t *testing.T) {
	own, _ := example()
	buf := make([]byte, 0, 1024)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = own.Append(buf[:0], 12) }))
}
