package client

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHashesMatchPublishedVectors(t *testing.T) {
	for key, want := range map[string]int32{"21": -973932308, "foobar": -790332482, "abc": 479470107} {
		require.Equal(t, want, int32(murmur2([]byte(key))), "murmur2 of %q as in the Java client's own test", key)
	}
	require.Equal(t, uint32(0xd067cf64), murmur2([]byte("kafka")), "murmur2 as in librdkafka's own test")
	require.Equal(t, uint32(0x106e08d9), murmur2(nil), "murmur2 of nothing as in librdkafka's own test")
	h := int32(fnv1a([]byte("hejsan")))
	require.Equal(t, int32(0x17b1e27a), -h, "Sarama's default negates")
	require.Equal(t, uint32(0x684e1d86), uint32(h)&0x7fffffff, "Sarama's reference partitioner masks")
	require.Equal(t, uint32(0xd077037e), crc32.ChecksumIEEE([]byte("hejsan")), "librdkafka hashes with CRC32")
}

func TestPartitionersStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"hash", "fnv1a", "murmur2", "crc32", "sticky", "roundrobin", "random"}).Draw(t, "partitioner")
		n := rapid.Int32Range(1, 1000).Draw(t, "partitions")
		m := &ProducerMessage{Key: rapid.SliceOf(rapid.Byte()).Draw(t, "key")}
		p := partitioners[name]()
		for range 3 {
			got, err := p.Partition(m, n)
			require.NoError(t, err)
			require.GreaterOrEqual(t, got, int32(0))
			require.Less(t, got, n)
		}
	})
}

func TestSameKeySamePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key")
		for _, name := range []string{"hash", "fnv1a", "murmur2", "crc32"} {
			a, _ := partitioners[name]().Partition(&ProducerMessage{Key: key}, 17)
			b, _ := partitioners[name]().Partition(&ProducerMessage{Key: key}, 17)
			require.Equal(t, a, b, name)
		}
	})
}

func TestStickySpreadsBytesEvenly(t *testing.T) {
	p := partitioners["sticky"]()
	count := map[int32]int{}
	runs, last := 0, int32(-1)
	const n = 60_000
	for range n {
		at, err := p.Partition(&ProducerMessage{Value: make([]byte, 99)}, 6)
		require.NoError(t, err)
		if at != last {
			runs, last = runs+1, at
		}
		count[at]++
	}
	for at, c := range count {
		require.InDelta(t, n/6, c, stickyBytes/100+1, "partition %d", at)
	}
	require.Less(t, runs, n/100, "consecutive messages share a partition")
}

func TestManualPartitionerRefusesWhatTheTopicHasNot(t *testing.T) {
	for _, at := range []int32{-1, 3} {
		_, err := partitioners["manual"]().Partition(&ProducerMessage{Partition: at}, 3)
		require.ErrorIs(t, err, ErrPartitionInvalid)
	}
}
