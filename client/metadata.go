package client

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// metadata is what the client knows of the cluster at one moment. It is never changed once
// published: a refresh makes a new one from the old (merge), so readers take no lock.
type metadata struct {
	clusterID  string
	controller int32
	brokers    map[int32]brokerMeta
	topics     map[string]*topicMeta
}

type brokerMeta struct {
	addr string
	rack string
}

// topicMeta is one topic. err is set while the cluster has no usable answer about it.
type topicMeta struct {
	id         [16]byte
	err        error
	fetchedAt  time.Time
	partitions []partitionMeta
	writable   []int32 // partitions with a leader, in order
}

// partitionMeta is one partition. leader is −1 while it has none.
type partitionMeta struct {
	leader int32
	epoch  int32
	// stale counts answers in a row that were older than this one.
	stale int32
	// inSync and off are where in nodes those in sync begin, and those that are offline; before
	// them stand all replicas. There may be tens of thousands of partitions.
	inSync, off int32
	nodes       []int32
	err         error
}

func (p *partitionMeta) replicas() []int32 { return p.nodes[:p.inSync] }
func (p *partitionMeta) isr() []int32      { return p.nodes[p.inSync:p.off] }
func (p *partitionMeta) offline() []int32  { return p.nodes[p.off:] }

// maxStale is how many answers in a row with an older leader epoch are taken for a lagging
// broker; the next one is believed (a topic may have been deleted and made again, or an unclean
// election may have lost the epoch).
const maxStale = 5

// has says whether anything is known of a partition.
func (m *metadata) has(tp topicPartition) bool {
	t := m.topics[tp.topic]
	return t != nil && tp.id >= 0 && int(tp.id) < len(t.partitions)
}

// look is what is known of a partition, or what the cluster said instead, without asking it.
func (m *metadata) look(tp topicPartition) (partitionMeta, error) {
	t := m.topics[tp.topic]
	if t == nil || len(t.partitions) == 0 {
		return partitionMeta{}, topicError(tp.topic, t)
	}
	return t.partition(tp.topic, tp.id)
}

func (t *topicMeta) partition(topic string, id int32) (partitionMeta, error) {
	if id < 0 || int(id) >= len(t.partitions) {
		return partitionMeta{}, fmt.Errorf("%w: topic %q has partitions 0 to %d, not %d",
			ErrPartitionInvalid, topic, len(t.partitions)-1, id)
	}
	return t.partitions[id], nil
}

func emptyMetadata() *metadata {
	return &metadata{controller: -1, brokers: map[int32]brokerMeta{}, topics: map[string]*topicMeta{}}
}

// merge returns what is known after the answer r, received at now. full says that r lists every
// topic of the cluster, so that what it leaves out is gone.
func (m *metadata) merge(r *kmsg.MetadataResponse, full bool, now time.Time) *metadata {
	n := &metadata{clusterID: m.clusterID, controller: r.ControllerID, brokers: map[int32]brokerMeta{}}
	if r.ClusterID != nil {
		n.clusterID = *r.ClusterID
	}
	for i := range r.Brokers {
		b := &r.Brokers[i]
		meta := brokerMeta{addr: joinHostPort(b.Host, b.Port)}
		if b.Rack != nil {
			meta.rack = *b.Rack
		}
		n.brokers[b.NodeID] = meta
	}
	if full {
		n.topics = make(map[string]*topicMeta, len(r.Topics))
	} else {
		n.topics = maps.Clone(m.topics)
	}
	for i := range r.Topics {
		if t := &r.Topics[i]; t.Topic != nil {
			n.topics[*t.Topic] = mergeTopic(m.topics[*t.Topic], t, now)
		}
	}
	return n
}

// mergeTopic is what is known of one topic after the answer t. An answer that is only an error
// leaves the partitions known before in place: their leaders may still be right.
func mergeTopic(old *topicMeta, t *kmsg.MetadataResponseTopic, now time.Time) *topicMeta {
	n := &topicMeta{id: t.TopicID, err: wire.ErrorFor(t.ErrorCode), fetchedAt: now}
	same := old != nil && (old.id == t.TopicID || t.TopicID == [16]byte{})
	if n.err != nil && len(t.Partitions) == 0 {
		if old != nil {
			n.id, n.partitions, n.writable = old.id, old.partitions, old.writable
		}
		return n
	}
	count := 0
	for i := range t.Partitions {
		if p := int(t.Partitions[i].Partition); p >= 0 && p < len(t.Partitions) {
			count = max(count, p+1)
		}
	}
	n.partitions = make([]partitionMeta, count)
	for i := range n.partitions {
		n.partitions[i] = partitionMeta{leader: -1, epoch: -1, err: wire.ErrLeaderNotAvailable}
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if p.Partition < 0 || int(p.Partition) >= count {
			continue
		}
		var before *partitionMeta
		if same && int(p.Partition) < len(old.partitions) {
			before = &old.partitions[p.Partition]
		}
		n.partitions[p.Partition] = mergePartition(before, p)
	}
	for i := range n.partitions {
		if n.partitions[i].leader >= 0 {
			n.writable = append(n.writable, int32(i))
		}
	}
	return n
}

// mergePartition decides between what was known and what a broker says now. An epoch of −1
// never replaces a known one, and an older epoch is a lagging broker's, up to maxStale times.
func mergePartition(old *partitionMeta, p *kmsg.MetadataResponseTopicPartition) partitionMeta {
	n := partitionMeta{
		leader: p.Leader, epoch: p.LeaderEpoch, err: wire.ErrorFor(p.ErrorCode),
		inSync: int32(len(p.Replicas)), off: int32(len(p.Replicas) + len(p.ISR)),
		nodes: slices.Concat(p.Replicas, p.ISR, p.OfflineReplicas),
	}
	if n.err != nil {
		n.leader = -1
	}
	if old == nil {
		return n
	}
	if n.epoch >= 0 && n.epoch < old.epoch && old.stale < maxStale {
		kept := *old
		kept.stale++
		return kept
	}
	if n.epoch < 0 {
		n.epoch = old.epoch
	}
	return n
}

// moved returns m with one partition's leader changed, as a broker told in passing (KIP-951).
// It returns nil when that is no news.
func (m *metadata) moved(topic string, partition, leader, epoch int32) *metadata {
	t := m.topics[topic]
	if t == nil || partition < 0 || int(partition) >= len(t.partitions) || leader < 0 {
		return nil
	}
	if p := &t.partitions[partition]; epoch < p.epoch || p.leader == leader {
		return nil
	}
	if _, known := m.brokers[leader]; !known {
		return nil
	}
	nt := *t
	nt.partitions = slices.Clone(t.partitions)
	nt.partitions[partition].leader, nt.partitions[partition].epoch = leader, epoch
	n := *m
	n.topics = maps.Clone(m.topics)
	n.topics[topic] = &nt
	return &n
}
