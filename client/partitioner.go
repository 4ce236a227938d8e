package client

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
)

// Partitioner chooses the partition of each message of one topic. It is called by one goroutine
// at a time, in the order messages were handed over, with at least one partition.
type Partitioner interface {
	// Partition returns a number in [0, partitions).
	Partition(m *ProducerMessage, partitions int32) (int32, error)
	// RequiresConsistency says what the numbers count. True: every partition of the topic, so
	// that a key stays where it is while a leader is missing. False: the partitions that have a
	// leader now, so that none waits.
	RequiresConsistency(m *ProducerMessage) bool
}

// Refreshable is a Partitioner that wants to hear of metadata refreshes.
type Refreshable interface {
	// Refreshed is called before the next Partition after metadata about the topic was refreshed,
	// for whatever reason, whether anything has changed or not.
	Refreshed()
}

// partitioners makes a partitioner of one topic by the name of producer.partitioner.
var partitioners = map[string]func() Partitioner{
	"hash":       func() Partitioner { return &keyPartitioner{hash: fnvNegated} },
	"fnv1a":      func() Partitioner { return &keyPartitioner{hash: fnvMasked} },
	"murmur2":    func() Partitioner { return &keyPartitioner{hash: murmurPartition} },
	"crc32":      func() Partitioner { return &keyPartitioner{hash: crcPartition, emptyIsNone: true} },
	"classic":    func() Partitioner { return &classicPartitioner{hash: fnvNegated} },
	"sticky":     func() Partitioner { return &stickyPartitioner{} },
	"roundrobin": func() Partitioner { return &roundRobinPartitioner{} },
	"random":     func() Partitioner { return randomPartitioner{} },
	"manual":     func() Partitioner { return manualPartitioner{} },
}

func partitionerNames() string {
	var names []string
	for n := range partitioners {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// KeyPartitioners are the names of the partitioners that place every message with a key by that key
// alone.
func KeyPartitioners() []string { return []string{"classic", "crc32", "fnv1a", "hash", "murmur2"} }

// KeyPartitioner is one of KeyPartitioners, nil for another name. Its Partition of a message for which
// RequiresConsistency is true depends on the key and the number of partitions only.
func KeyPartitioner(name string) Partitioner {
	if !slices.Contains(KeyPartitioners(), name) {
		return nil
	}
	return partitioners[name]()
}

func (c *Config) partitioner(topic string) Partitioner {
	if c.Producer.NewPartitioner != nil {
		return c.Producer.NewPartitioner(topic)
	}
	return partitioners[c.Producer.Partitioner]()
}

// choosePartition asks a topic's partitioner, and holds what it says against what is known of the
// topic.
func choosePartition(by Partitioner, topic *topicMeta, m *ProducerMessage) (int32, error) {
	all := int32(len(topic.partitions))
	from := topic.writable
	consistent := by.RequiresConsistency(m)
	choices := all
	if !consistent && len(from) > 0 {
		choices = int32(len(from))
	}
	p, err := by.Partition(m, choices)
	if err != nil {
		return 0, fmt.Errorf("topic %q: %w", m.Topic, err)
	}
	if p < 0 || p >= choices {
		return 0, fmt.Errorf("topic %q: %w: the partitioner chose %d of %d", m.Topic, ErrPartitionInvalid, p, choices)
	}
	if choices != all || !consistent && len(from) == int(all) {
		return from[p], nil
	}
	return p, nil
}

// noteRefresh tells a partitioner that wants to know when now is a later description of its topic
// than before, which may be nil.
func noteRefresh(by Partitioner, before, now *topicMeta) {
	if r, wants := by.(Refreshable); wants && before != nil && !before.fetchedAt.Equal(now.fetchedAt) {
		r.Refreshed()
	}
}

// keyPartitioner hashes the key, and is sticky without one.
type keyPartitioner struct {
	hash        func(key []byte, partitions int32) int32
	emptyIsNone bool // librdkafka's consistent_random takes an empty key for none
	keyless     stickyPartitioner
}

func (p *keyPartitioner) Partition(m *ProducerMessage, partitions int32) (int32, error) {
	if p.RequiresConsistency(m) {
		return p.hash(m.Key, partitions), nil
	}
	return p.keyless.Partition(m, partitions)
}

func (p *keyPartitioner) RequiresConsistency(m *ProducerMessage) bool {
	return m.Key != nil && !(p.emptyIsNone && len(m.Key) == 0)
}

// stickyBytes is how much goes to one partition before the next has its turn: batch.size of the
// Java client, whose uniform partitioner counts bytes in the same way (KIP-794).
const stickyBytes = 16 << 10

// stickyPartitioner sends runs of messages to one partition after the other, so that batches
// fill (KIP-480) while every partition gets the same number of bytes (KIP-794). It starts at
// a random partition, so that many producers do not march in step.
type stickyPartitioner struct {
	turn    uint32
	left    int
	started bool
	// current is turn's partition of so many; worked out when either changes.
	current, of int32
}

func (p *stickyPartitioner) Partition(m *ProducerMessage, partitions int32) (int32, error) {
	return p.next(m, partitions), nil
}

func (p *stickyPartitioner) next(m *ProducerMessage, partitions int32) int32 {
	if p.left <= 0 || p.of != partitions {
		p.choose(partitions)
	}
	p.left -= len(m.Key) + len(m.Value) + 1
	return p.current
}

// choose begins a partition's turn, or finds the one whose turn it is among another number.
func (p *stickyPartitioner) choose(partitions int32) {
	if !p.started {
		p.started, p.turn, p.left = true, rand.Uint32(), stickyBytes
	}
	if p.left <= 0 {
		p.turn++
		p.left = stickyBytes
	}
	p.current, p.of = int32(p.turn%uint32(partitions)), partitions
}

func (*stickyPartitioner) RequiresConsistency(*ProducerMessage) bool { return false }

// classicPartitioner hashes the key, and keeps messages without one to one random partition until
// the next refresh of metadata, as Kafka's first producers did: few partitions are written to at
// a time, and none is written to evenly.
type classicPartitioner struct {
	hash   func(key []byte, partitions int32) int32
	cached int32
	chosen bool
}

func (p *classicPartitioner) Partition(m *ProducerMessage, partitions int32) (int32, error) {
	if p.RequiresConsistency(m) {
		return p.hash(m.Key, partitions), nil
	}
	if !p.chosen || p.cached >= partitions {
		p.cached, p.chosen = rand.Int32N(partitions), true
	}
	return p.cached, nil
}

func (*classicPartitioner) RequiresConsistency(m *ProducerMessage) bool { return m.Key != nil }

// Refreshed makes the next message without a key choose anew.
func (p *classicPartitioner) Refreshed() { p.chosen = false }

type roundRobinPartitioner struct{ turn uint32 }

func (p *roundRobinPartitioner) Partition(_ *ProducerMessage, partitions int32) (int32, error) {
	p.turn++
	return int32((p.turn - 1) % uint32(partitions)), nil
}

func (*roundRobinPartitioner) RequiresConsistency(*ProducerMessage) bool { return false }

type randomPartitioner struct{}

func (randomPartitioner) Partition(_ *ProducerMessage, partitions int32) (int32, error) {
	return rand.Int32N(partitions), nil
}

func (randomPartitioner) RequiresConsistency(*ProducerMessage) bool { return false }

// manualPartitioner takes the partition the message names.
type manualPartitioner struct{}

func (manualPartitioner) Partition(m *ProducerMessage, partitions int32) (int32, error) {
	if m.Partition < 0 || m.Partition >= partitions {
		return 0, ErrPartitionInvalid
	}
	return m.Partition, nil
}

func (manualPartitioner) RequiresConsistency(*ProducerMessage) bool { return true }

// fnv1a is the 32-bit FNV-1a hash (Fowler, Noll, Vo).
func fnv1a(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// fnvNegated is Sarama's default hash partitioner: the hash as a signed number, the remainder
// made positive afterwards.
func fnvNegated(key []byte, partitions int32) int32 {
	p := int32(fnv1a(key)) % partitions
	if p < 0 {
		return -p
	}
	return p
}

// fnvMasked is Sarama's reference hash partitioner: the sign bit cleared first.
func fnvMasked(key []byte, partitions int32) int32 {
	return int32(fnv1a(key)&0x7fffffff) % partitions
}

// murmurPartition is the Java client's default for messages with a key.
func murmurPartition(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

// crcPartition is librdkafka's consistent partitioner.
func crcPartition(key []byte, partitions int32) int32 {
	return int32(crc32.ChecksumIEEE(key) % uint32(partitions))
}

// murmur2 is the 32-bit MurmurHash2 (Appleby) with the seed of the Java client.
func murmur2(b []byte) uint32 {
	const m, seed = 0x5bd1e995, 0x9747b28c
	h := uint32(seed) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
