package fetch_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

func answer() *kmsg.FetchResponse {
	r := kmsg.NewPtrFetchResponse()
	r.ThrottleMillis, r.ErrorCode, r.SessionID = 25, 70, 99
	for _, name := range []string{"a", "bb"} {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = name, [16]byte{name[0]}
		for i := range int32(3) {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.ErrorCode = i, int16(i)
			p.HighWatermark, p.LastStableOffset, p.LogStartOffset = 100+int64(i), 90, 5
			p.PreferredReadReplica = 2 + i
			if i > 0 {
				p.RecordBatches = []byte("records " + name)
				p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 4, 17
				for j := range int64(2) {
					a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
					a.ProducerID, a.FirstOffset = 1000+j, 50-j
					p.AbortedTransactions = append(p.AbortedTransactions, a)
				}
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func TestResponseMatchesDefinitions(t *testing.T) {
	ref := answer()
	var got fetch.Response
	for version := int16(4); version <= wire.Versions[fetch.Key].Max; version++ {
		ref.SetVersion(version)
		require.NoError(t, got.Decode(ref.AppendTo(nil), version))
		require.EqualValues(t, 25e6, got.Throttle)
		if version >= 7 {
			require.EqualValues(t, 70, got.Code)
			require.EqualValues(t, 99, got.Session)
		}
		require.Len(t, got.Partitions, 6)
		p := got.Partitions[5]
		if version < fetch.FirstByID {
			require.Equal(t, "bb", string(p.Topic))
		} else {
			require.Equal(t, [16]byte{'b'}, p.TopicID)
		}
		require.EqualValues(t, 2, p.Partition)
		require.EqualValues(t, 2, p.Code)
		require.EqualValues(t, 102, p.HighWatermark)
		require.EqualValues(t, 90, p.LastStableOffset)
		require.EqualValues(t, since(version, 5, 5), p.LogStart)
		require.EqualValues(t, since(version, 11, 4), p.PreferredReplica)
		require.EqualValues(t, since(version, 12, 4), p.Leader)
		require.EqualValues(t, since(version, 12, 17), p.LeaderEpoch)
		require.Equal(t, "records bb", string(p.Records))
		require.Equal(t, []fetch.Aborted{{1001, 49}, {1000, 50}}, got.Aborted(&p), "sorted by first offset")
		require.Empty(t, got.Partitions[3].Records)
	}
}

// Where the logs part (KIP-320) is said in a tagged field; a broker may send it empty.
func TestResponseDiverging(t *testing.T) {
	ref := answer()
	ref.Topics[1].Partitions[2].DivergingEpoch.Epoch, ref.Topics[1].Partitions[2].DivergingEpoch.EndOffset = 3, 40
	var got fetch.Response
	for version := int16(11); version <= wire.Versions[fetch.Key].Max; version++ {
		ref.SetVersion(version)
		require.NoError(t, got.Decode(ref.AppendTo(nil), version))
		p := got.Partitions[5]
		require.Equal(t, version >= 12, p.Diverging)
		require.EqualValues(t, since(version, 12, 3), p.DivergingEpoch)
		require.EqualValues(t, since(version, 12, 40), p.DivergingEnd)
		require.False(t, got.Partitions[4].Diverging)
	}
}

func since(version, from int16, v int) int {
	if version < from {
		return -1
	}
	return v
}

func TestResponseAllocatesNothing(t *testing.T) {
	ref := answer()
	ref.SetVersion(12)
	body := ref.AppendTo(nil)
	var got fetch.Response
	require.NoError(t, got.Decode(body, 12))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if got.Decode(body, 12) != nil {
			t.Fatal("does not decode")
		}
	}))
}

func TestResponseHostile(t *testing.T) {
	ref := answer()
	ref.SetVersion(4)
	whole := ref.AppendTo(nil)
	var got fetch.Response
	for n := range whole {
		err := got.Decode(whole[:n], 4) // a count that the rest cannot hold is a length error
		require.True(t, errors.Is(err, wire.ErrTruncated) || errors.Is(err, wire.ErrLength), "cut to %d bytes: %v", n, err)
	}
	require.ErrorIs(t, got.Decode(append(whole, 0), 4), wire.ErrTrailing)

	rows := []struct {
		what string
		body []byte
		err  error
	}{
		{"a negative count of topics", []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe}, wire.ErrLength},
		{"two thousand million topics in no bytes", []byte{0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}, wire.ErrLength},
		{"a null topic name", []byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0}, wire.ErrNull},
		{"a topic name of -7 bytes", []byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xf9, 0, 0, 0, 0}, wire.ErrLength},
	}
	for _, row := range rows {
		require.ErrorIs(t, got.Decode(row.body, 4), row.err, row.what)
	}
}

func FuzzResponse(f *testing.F) {
	ref := answer()
	for version := int16(4); version <= wire.Versions[fetch.Key].Max; version++ {
		ref.SetVersion(version)
		f.Add(ref.AppendTo(nil), version)
	}
	ref.Topics[0].Partitions[0].DivergingEpoch.Epoch, ref.Topics[0].Partitions[0].DivergingEpoch.EndOffset = 3, 40
	ref.SetVersion(13)
	f.Add(ref.AppendTo(nil), int16(13))
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, int16(4))
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		const versions = 15 // 4 to 18
		version = 4 + (version%versions+versions)%versions
		var got fetch.Response
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := got.Decode(body, version)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(64*len(body)+64<<10) {
			t.Fatalf("%d bytes of memory for %d bytes", took, len(body))
		}
		if err != nil {
			return
		}
		total := 0
		for i := range got.Partitions {
			p := &got.Partitions[i]
			total += len(p.Records) + 16*len(got.Aborted(p))
			fetch.Measure(p.Records, 0)
		}
		if total > len(body) {
			t.Fatalf("%d bytes out of %d", total, len(body))
		}
		// What we take, the definitions take as well.
		ref := kmsg.NewPtrFetchResponse()
		ref.SetVersion(version)
		if err := ref.ReadFrom(body); err == nil {
			n := 0
			for _, topic := range ref.Topics {
				n += len(topic.Partitions)
			}
			if n != len(got.Partitions) {
				t.Fatalf("%d partitions, the definitions read %d", len(got.Partitions), n)
			}
		}
	})
}
