package produce

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

func join(bufs [][]byte) []byte { return bytes.Join(bufs, nil) }

// TestRequestReadsBack has kmsg, generated from Kafka's own definitions, read what we encode.
func TestRequestReadsBack(t *testing.T) {
	txn := "txn"
	for version := int16(3); version <= 12; version++ {
		for _, id := range []*string{nil, &txn} {
			var e Encoder
			for range 2 { // an encoder is used again
				e.Begin(Head{Version: version, TransactionalID: id, Acks: -1, TimeoutMs: 1500})
				e.Topic("a")
				e.Batch(0, []byte("batch-a0"))
				e.Batch(7, bytes.Repeat([]byte("x"), 300))
				e.Topic("topic-b")
				e.Batch(1, []byte("batch-b1"))
			}
			got := kmsg.NewPtrProduceRequest()
			got.Version = version
			require.NoError(t, got.ReadFrom(join(e.End())), "version %d", version)
			require.Equal(t, id, got.TransactionID)
			require.Equal(t, int16(-1), got.Acks)
			require.Equal(t, int32(1500), got.TimeoutMillis)
			require.Len(t, got.Topics, 2)
			require.Equal(t, "a", got.Topics[0].Topic)
			require.Equal(t, int32(7), got.Topics[0].Partitions[1].Partition)
			require.Len(t, got.Topics[0].Partitions[1].Records, 300)
			require.Equal(t, "topic-b", got.Topics[1].Topic)
			require.Equal(t, "batch-b1", string(got.Topics[1].Partitions[0].Records))
		}
	}
}

func answer(version int16) []byte {
	r := kmsg.NewPtrProduceResponse()
	r.Version = version
	r.ThrottleMillis = 25
	text := "too old"
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic = "a"
	for i := range int32(2) {
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.BaseOffset, p.LogAppendTime = i, 100+int64(i), -1
		if i == 1 {
			p.ErrorCode, p.BaseOffset = 6, -1
			p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 3, 9
			bad := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			bad.RelativeOffset = 4
			p.ErrorRecords = append(p.ErrorRecords, bad)
			p.ErrorMessage = &text
		}
		topic.Partitions = append(topic.Partitions, p)
	}
	r.Topics = append(r.Topics, topic)
	return r.AppendTo(nil)
}

func TestAnswerIsReadInEveryVersion(t *testing.T) {
	var a Answer
	for version := int16(3); version <= 12; version++ {
		var got []Outcome
		throttle, err := a.Read(answer(version), version, func(o *Outcome) {
			c := *o
			c.BadRecords = append([]int32(nil), o.BadRecords...)
			got = append(got, c)
		})
		require.NoError(t, err, "version %d", version)
		require.Equal(t, 25*time.Millisecond, throttle)
		require.Len(t, got, 2)
		require.Equal(t, int64(100), got[0].BaseOffset)
		require.Equal(t, int16(6), got[1].Code)
		if version >= 8 {
			require.Equal(t, []int32{4}, got[1].BadRecords)
			require.Equal(t, "too old", string(got[1].Message))
		}
		if version >= 10 {
			require.Equal(t, int32(3), got[1].Leader)
			require.Equal(t, int32(9), got[1].LeaderEpoch)
		} else {
			require.Equal(t, int32(-1), got[1].Leader)
		}
	}
}

func TestTruncatedAnswersAreErrors(t *testing.T) {
	var a Answer
	for _, version := range []int16{3, 8, 9, 12} {
		whole := answer(version)
		for n := range whole {
			_, err := a.Read(whole[:n], version, func(*Outcome) {})
			require.Error(t, err, "version %d cut at %d", version, n)
			require.True(t, errors.Is(err, wire.ErrTruncated) || errors.Is(err, wire.ErrLength) || errors.Is(err, wire.ErrVarint) ||
				errors.Is(err, wire.ErrNull), "%v", err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, version := range []int16{3, 8, 9, 10, 12} {
		f.Add(answer(version), version)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		if version < 3 || version > 12 {
			return
		}
		var a Answer
		n := 0
		_, err := a.Read(body, version, func(*Outcome) { n++ })
		if err == nil && n > len(body) {
			t.Fatalf("%d outcomes from %d bytes", n, len(body))
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	var a Answer
	body := answer(12)
	b.ReportAllocs()
	for range b.N {
		if _, err := a.Read(body, 12, func(*Outcome) {}); err != nil {
			b.Fatal(err)
		}
	}
}
