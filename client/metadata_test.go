package client

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// answerAbout is a broker's answer about topic "t", whose one partition is led so.
func answerAbout(leader, epoch int32, id byte, code int16) *kmsg.MetadataResponse {
	r := kmsg.NewPtrMetadataResponse()
	for i, addr := range []string{"a:1", "b:1"} {
		r.Brokers = append(r.Brokers, brokerAt(int32(i), addr))
	}
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID, t.ErrorCode = kmsg.StringPtr("t"), [16]byte{id}, code
	if code == 0 {
		t.Partitions = led(1, leader, epoch)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// What is believed when an answer contradicts what is known.
func TestWhichAnswersAreBelieved(t *testing.T) {
	type told struct {
		leader, epoch int32
		topic         byte
		code          int16
	}
	for _, tc := range []struct {
		name          string
		answers       []told
		leader, epoch int32
		err           error
	}{
		{"a newer epoch", []told{{0, 4, 1, 0}, {1, 5, 1, 0}}, 1, 5, nil},
		{"M5: a new leader with the same epoch", []told{{0, 4, 1, 0}, {1, 4, 1, 0}}, 1, 4, nil},
		{"M4: an older epoch is a broker that lags behind", []told{{1, 5, 1, 0}, {0, 4, 1, 0}}, 1, 5, nil},
		{"M4: five of them in a row too", []told{{1, 5, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}}, 1, 5, nil},
		{"M4: the sixth is believed", []told{{1, 5, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}}, 0, 4, nil},
		{"M4: a newer one in between starts the count again", []told{{1, 5, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}, {1, 5, 1, 0}, {0, 4, 1, 0}, {0, 4, 1, 0}}, 1, 5, nil},
		{"M4: epoch −1 is not adopted, its leader is", []told{{0, 4, 1, 0}, {1, -1, 1, 0}}, 1, 4, nil},
		{"M4: epoch −1 does not make an older one newer", []told{{1, 5, 1, 0}, {1, -1, 1, 0}, {0, 4, 1, 0}}, 1, 5, nil},
		{"M6: a topic made again starts with its own epochs", []told{{1, 5, 1, 0}, {0, 0, 2, 0}}, 0, 0, nil},
		{"an answer that is only an error leaves leaders in place", []told{{1, 5, 1, 0}, {0, 0, 0, 3}}, 1, 5, wire.ErrUnknownTopicOrPartition},
		{"no leader at the moment", []told{{1, 5, 1, 0}, {-1, 6, 1, 0}}, -1, 6, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := emptyMetadata()
			for _, a := range tc.answers {
				m = m.merge(answerAbout(a.leader, a.epoch, a.topic, a.code), false, time.Now())
			}
			got := m.topics["t"]
			require.Equal(t, tc.leader, got.partitions[0].leader)
			require.Equal(t, tc.epoch, got.partitions[0].epoch)
			require.ErrorIs(t, got.err, tc.err)
			require.Equal(t, tc.leader >= 0, len(got.writable) == 1)
		})
	}
}

// M3: a leader that a broker names in passing (KIP-951).
func TestWhichHintsAreBelieved(t *testing.T) {
	m := emptyMetadata().merge(answerAbout(0, 4, 1, 0), false, time.Now())
	for _, tc := range []struct {
		name                     string
		partition, leader, epoch int32
		believed                 bool
	}{
		{"M3: a newer leader", 0, 1, 5, true},
		{"M5: the same epoch, another leader", 0, 1, 4, true},
		{"M4: an older epoch", 0, 1, 3, false},
		{"M4: no epoch", 0, 1, -1, false},
		{"the leader known already", 0, 0, 4, false},
		{"no leader", 0, -1, 5, false},
		{"a node that is not known", 0, 9, 5, false},
		{"a partition that is not known", 3, 1, 5, false},
		{"a negative partition", -1, 1, 5, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := m.moved("t", tc.partition, tc.leader, tc.epoch)
			require.Equal(t, tc.believed, n != nil)
			if n != nil {
				require.Equal(t, tc.leader, n.topics["t"].partitions[0].leader)
				require.Equal(t, tc.epoch, n.topics["t"].partitions[0].epoch)
			}
			require.EqualValues(t, 0, m.topics["t"].partitions[0].leader, "what was published is not changed")
		})
	}
}

// What a broker says is not trusted: the numbers of partitions are bounded by their count.
func TestHostileMetadata(t *testing.T) {
	r := answerAbout(0, 1, 1, 0)
	for i, number := range []int32{1 << 30, -5, 0, 0} {
		p := led(1, 1, 1)[0]
		p.Partition = number
		if i == 3 {
			p.Leader = -9
		}
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, p)
	}
	r.Topics = append(r.Topics, kmsg.NewMetadataResponseTopic()) // without a name
	m := emptyMetadata().merge(r, true, time.Now())
	require.Len(t, m.topics, 1)
	require.Len(t, m.topics["t"].partitions, 1)
}

// M10: what 10 000 partitions take.
func BenchmarkMetadataOf10000Partitions(b *testing.B) {
	r := answerAbout(0, 1, 1, 0)
	r.Topics[0].Partitions = led(10_000, 0, 1)
	for i := range r.Topics[0].Partitions {
		r.Topics[0].Partitions[i].Partition = int32(i)
		r.Topics[0].Partitions[i].Replicas = []int32{0, 1, 2}
		r.Topics[0].Partitions[i].ISR = []int32{0, 1, 2}
	}
	var before, after runtime.MemStats
	b.ReportAllocs()
	var m *metadata
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		m = emptyMetadata().merge(r, true, time.Now())
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10_000, "B/partition")
	runtime.KeepAlive(m)
	runtime.KeepAlive(r)
}
