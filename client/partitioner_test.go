package client

import (
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The vectors are those of the other clients' own tests (Java: UtilsTest; librdkafka: rdmurmur2.c,
// rdfnv1a.c), and Sarama's for "hejsan".
func TestHashesMatchPublishedVectors(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		require.Equal(t, want, int32(murmur2([]byte(key))), "murmur2 of %q in Java", key)
	}
	const unaligned = "PreAmbleWillBeRemoved,ThePrePartThatIs"
	for _, v := range []struct {
		key              string
		murmur2, fnvMade uint32
	}{
		{"kafka", 0xd067cf64, 0x0d33c4e1},
		{"giberish123456789", 0x8f552b0c, 0x77a58295},
		{"1234", 0x9fc97b14, 0x023bdd03},
		{"234", 0xe7c009ca, 0x2dea3cd2},
		{"34", 0x873930da, 0x740fa83e},
		{"4", 0x5a4b5ca1, 0x310ca263},
		{unaligned, 0x78424f1c, 0x65cbd69c},
		{unaligned[1:], 0x4a62b377, 0x6e49c79a},
		{unaligned[2:], 0xe0e4e09e, 0x69eed356},
		{unaligned[3:], 0x62b8b43f, 0x6abcc023},
		{"", 0x106e08d9, 0x7ee3623b},
	} {
		require.Equal(t, v.murmur2, murmur2([]byte(v.key)), "murmur2 of %q in librdkafka", v.key)
		h := int32(fnv1a([]byte(v.key)))
		require.Equal(t, v.fnvMade, uint32(max(h, -h)), "FNV-1a of %q in librdkafka, its sign taken off", v.key)
	}
	h := int32(fnv1a([]byte("hejsan")))
	require.Equal(t, int32(0x17b1e27a), -h, "Sarama's default negates")
	require.Equal(t, uint32(0x684e1d86), uint32(h)&0x7fffffff, "Sarama's reference partitioner masks")
	require.Equal(t, uint32(0xd077037e), crc32.ChecksumIEEE([]byte("hejsan")), "librdkafka hashes with CRC32")
}

// Partitions, worked out from the hashes above by each client's own rule for negative ones.
func TestKeysGoWhereOtherClientsSendThem(t *testing.T) {
	for _, v := range []struct {
		partitioner, key string
		partitions, want int32
		why              string
	}{
		{"murmur2", "foobar", 50, 16, "Java masks the sign: (−790332482 & 0x7fffffff) mod 50"},
		{"murmur2", "21", 6, (-973932308 & 0x7fffffff) % 6, "not the absolute value, which would be 2"},
		{"murmur2", "abc", 7, 479470107 % 7, "a hash that is not negative"},
		{"murmur2", "", 10, 0x106e08d9 % 10, "Java hashes an empty key"},
		{"hash", "hejsan", 100, 0x17b1e27a % 100, "Sarama's default: remainder first, then its sign off"},
		{"hash", "kafka", 10, 5, "librdkafka's fnv1a is Sarama's default"},
		{"hash", "giberish123456789", 50, 23, "librdkafka's fnv1a is Sarama's default"},
		{"hash", "", 10, 0x7ee3623b % 10, "Sarama hashes an empty key"},
		{"fnv1a", "hejsan", 100, 0x684e1d86 % 100, "Sarama's reference: the sign bit off, then the remainder"},
		{"fnv1a", "", 10, (2166136261 & 0x7fffffff) % 10, "Sarama hashes an empty key"},
		{"crc32", "hejsan", 100, 0xd077037e % 100, "librdkafka takes the hash as unsigned"},
		{"crc32", "kafka", 10, 9, "0x5bbc7517 mod 10"},
		{"crc32", "giberish123456789", 50, 21, "0x7b3a8e3f mod 50"},
	} {
		got, err := partitioners[v.partitioner]().Partition(&ProducerMessage{Key: []byte(v.key)}, v.partitions)
		require.NoError(t, err)
		require.Equal(t, v.want, got, "%s of %q: %s", v.partitioner, v.key, v.why)
	}
}

// A null key is none for everybody; an empty one is a key but for librdkafka's default.
func TestNullAndEmptyKeys(t *testing.T) {
	for _, v := range []struct {
		partitioner    string
		null, emptyKey bool // is hashed
	}{
		{"hash", false, true}, {"fnv1a", false, true}, {"murmur2", false, true}, {"crc32", false, false},
	} {
		p := partitioners[v.partitioner]()
		require.Equal(t, v.null, p.RequiresConsistency(&ProducerMessage{}), "%s, null key", v.partitioner)
		require.Equal(t, v.emptyKey, p.RequiresConsistency(&ProducerMessage{Key: []byte{}}), "%s, empty key", v.partitioner)
		require.True(t, p.RequiresConsistency(&ProducerMessage{Key: []byte("k")}), v.partitioner)
		for name, key := range map[string][]byte{"null": nil, "empty": {}} {
			if v.emptyKey && key != nil {
				continue
			}
			seen := map[int32]bool{}
			for range 2000 {
				at, err := p.Partition(&ProducerMessage{Key: key, Value: make([]byte, 999)}, 4)
				require.NoError(t, err)
				seen[at] = true
			}
			require.Len(t, seen, 4, "%s, %s key: goes everywhere", v.partitioner, name)
		}
	}
}

func TestRoundRobinTakesTurnsAndRandomDoesNot(t *testing.T) {
	p := partitioners["roundrobin"]()
	for i := range int32(12) {
		at, err := p.Partition(&ProducerMessage{Key: []byte("k")}, 5)
		require.NoError(t, err)
		require.Equal(t, i%5, at)
	}
	r := partitioners["random"]()
	seen := map[int32]int{}
	for range 5000 {
		at, err := r.Partition(&ProducerMessage{Key: []byte("k")}, 5)
		require.NoError(t, err)
		seen[at]++
	}
	for at := range int32(5) {
		require.InDelta(t, 1000, seen[at], 200, "partition %d", at)
	}
}

// What the numbers count: with a key all partitions, without one those with a leader.
func TestKeyedMessagesWaitForTheirPartition(t *testing.T) {
	parts := led(4, 0, 1)
	parts[1].Leader, parts[1].ErrorCode = -1, 5
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = parts
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) {
			c.Producer.DeliveryTimeout, c.Producer.NewPartitioner = 3*time.Second, func(string) Partitioner {
				return &keyPartitioner{hash: func(key []byte, n int32) int32 { return int32(key[0]-'0') % n }}
			}
		}, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		for range 50 {
			m := &ProducerMessage{Topic: "t", Value: make([]byte, 20_000)}
			require.NoError(t, sendOne(t, p, m))
			require.NotEqualValues(t, 1, m.Partition, "without a key no message goes where nobody leads")
		}
		m := &ProducerMessage{Topic: "t", Key: []byte("2")}
		require.NoError(t, sendOne(t, p, m))
		require.EqualValues(t, 2, m.Partition, "all four are counted")
		err = sendOne(t, p, &ProducerMessage{Topic: "t", Key: []byte("1")})
		require.ErrorIs(t, err, ErrDeliveryTimeout, "a key stays where it belongs")
	})
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

// Where the messages of a producer go is for the setting to say. That a key is placed as others place
// it is for the tests of vectors above.
func TestThePartitionerOfTheConfigurationPlacesMessages(t *testing.T) {
	const partitions, n, asked = 7, 28, 3
	k := cluster(t, 1, partitions)
	asAsked := func(at []int32) bool { return together(at) && at[0] == asked }
	inTurn := func(at []int32) bool {
		for i := range at[1:] {
			if at[i+1] != (at[i]+1)%partitions {
				return false
			}
		}
		return true
	}
	anywhere := func(at []int32) bool { return !together(at) && !inTurn(at) } // or once in 7²⁷ times
	chosen := map[string]string{}                                             // who placed keys where
	for _, tc := range []struct {
		name        string
		bare, keyed func(at []int32) bool // of messages without keys and with them; nil: by the key
	}{
		{"manual", asAsked, asAsked},
		{"roundrobin", inTurn, inTurn},
		{"sticky", together, together},
		{"random", anywhere, anywhere},
		{"hash", together, nil},
		{"fnv1a", together, nil},
		{"murmur2", together, nil},
		{"crc32", together, nil},
		{"classic", together, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.Producer.Partitioner = tc.name
			p := asyncProducer(t, k, cfg)
			send := func(key func(i int) []byte) (msgs []*ProducerMessage, at []int32) {
				for i := range n {
					msgs = append(msgs, &ProducerMessage{Topic: "t", Key: key(i), Partition: asked})
				}
				_, err := p.ProduceRun(within(t), msgs, nil)
				require.NoError(t, err)
				require.NoError(t, p.Flush(within(t)))
				for _, m := range msgs {
					at = append(at, m.Partition)
				}
				return msgs, at
			}
			_, at := send(func(int) []byte { return nil })
			require.True(t, tc.bare(at), "without keys: %v", at)
			msgs, at := send(func(i int) []byte { return fmt.Appendf(nil, "key %d", i) })
			if tc.keyed != nil {
				require.True(t, tc.keyed(at), "with keys: %v", at)
				return
			}
			by := KeyPartitioner(tc.name)
			for i, m := range msgs {
				want, err := by.Partition(m, partitions)
				require.NoError(t, err)
				require.Equal(t, want, at[i])
			}
			if tc.name != "classic" { // which places keys as hash does
				require.Empty(t, chosen[fmt.Sprint(at)], "the same places")
				chosen[fmt.Sprint(at)] = tc.name
			}
		})
	}
}

// together: all are in one partition.
func together(at []int32) bool { return len(slices.Compact(slices.Clone(at))) == 1 }
