package client

import (
	"log/slog"
	"time"

	"github.com/kbench/kbench/client/internal/fetch"
)

// The values of StartOffset and SetOffset that stand for the ends of the log.
const (
	FirstOffset int64 = fetch.First
	LastOffset  int64 = fetch.Last
)

// ReaderConfig says what a Reader reads. How it fetches stands in Config.Consumer.
type ReaderConfig struct {
	// Client is shared with others and must outlive the reader. Without one, the reader makes a
	// client of its own from Brokers and Config (nil: the defaults).
	Client  *Client
	Brokers []string
	Config  *Config

	// Topic is what is read. A member of a group may read several topics instead: those named in
	// Topics, and those whose names match TopicPattern, a regular expression (RE2) that must
	// match the whole name. Both are for groups only.
	Topic        string
	Topics       []string
	TopicPattern string
	// Partition is what is read when Partitions is empty; a group's partitions are given by the
	// group. Partitions are read over one connection per broker; messages of one partition come
	// in order.
	Partition  int32
	Partitions []int32
	// GroupID makes the reader a member of a consumer group, which shares the partitions of its
	// topics out among its members. Its settings are those of Config.Consumer.Group, where they are
	// not given below.
	GroupID string
	// GroupInstanceID makes it a static member (KIP-345): Close does not leave the group, and a
	// reader with the same name that comes back within SessionTimeout goes on without a
	// rebalance. Every member needs a name of its own.
	GroupInstanceID string
	// GroupProtocol is classic, consumer or auto; empty: as Config has it.
	GroupProtocol string
	// GroupBalancers are the assignors offered, by name; empty: those of Config.
	GroupBalancers []string
	// 0: as Config has them. A negative CommitInterval: CommitMessages commits at once.
	SessionTimeout, RebalanceTimeout, HeartbeatInterval, CommitInterval time.Duration
	// OnAssigned and OnRevoked are told of every rebalance: of the partitions that came, perhaps
	// none, before anything of them is delivered, and of those that went, after which nothing of
	// them is; OnRevoked may still commit. The generation is the group's; -1 where the member has
	// lost its place. They are called one at a time, from the reader's own goroutines, and hold the
	// rebalance up, so they must return well within RebalanceTimeout and must not close the reader.
	// One that does not return ends that wait only when the reader closes; see Close. A panic in one
	// is contained and logged.
	OnAssigned, OnRevoked func(generation int32, partitions []TopicPartition)

	// StartOffset is where every partition starts (in a group: every one of which the group has
	// committed nothing; partitions and topics that are added later start at their first message
	// in any case): FirstOffset, LastOffset (only messages that
	// are written from now on), or an offset. 0, the zero value, means FirstOffset, which is another
	// message where the log begins later: for offset 0 itself, which is then out of range, call
	// SetOffset(0) before the first Fetch (without a group).
	StartOffset int64
	// QueueBytes bounds the memory of answers that wait to be read; no further Fetch is sent
	// beyond it, or beyond Consumer.QueueCapacity batches. One answer per broker may come on
	// top, which was under way. 0: Consumer.MaxBytes.
	QueueBytes int
	// MaxAttempts is how many failures in a row that may pass (an unreachable broker, a missing
	// leader) are kept quiet about before one is returned as a ReadError that is Passing; the
	// reader goes on trying. 0: they are never returned, only logged and counted. That a partition is
	// not there may pass too, until brokers have said so for Metadata.Timeout.
	MaxAttempts int

	// OnFetch is told of every Fetch request, from the reader's own goroutines, one at a time
	// per broker. It must not block. A panic in it is contained and logged.
	OnFetch func(FetchStats)

	// Logger gets what happens to partitions and connections, ErrorLogger what goes wrong. Nil:
	// the client's Logger.
	Logger, ErrorLogger *slog.Logger
}

// FetchStats are the facts of one finished Fetch request.
type FetchStats struct {
	Broker        int32
	Written, Read time.Time     // monotonic; zero where it did not come so far
	Bytes         int           // of the answer
	Throttle      time.Duration // what the broker asked for
	Err           error         // of the request as a whole
}

func (c *ReaderConfig) validate() error {
	var p problems
	if c.Client == nil && len(c.Brokers) == 0 {
		p.add("brokers", "neither a client nor brokers are given")
	}
	if c.Client != nil && (len(c.Brokers) > 0 || c.Config != nil) {
		p.add("client", "a shared client has its own brokers and configuration; give one or the other")
	}
	if c.GroupID == "" {
		c.validatePartitions(&p)
	} else {
		c.validateGroup(&p)
	}
	if c.StartOffset < FirstOffset {
		p.add("startOffset", "is %d; offsets are 0 or more, or FirstOffset or LastOffset", c.StartOffset)
	}
	p.atLeast("queueBytes", c.QueueBytes, 0)
	p.atLeast("maxAttempts", c.MaxAttempts, 0)
	if len(p) > 0 {
		return &ConfigError{Problems: p}
	}
	return nil
}

func (c *ReaderConfig) validatePartitions(p *problems) {
	if c.Topic == "" {
		p.add("topic", "is missing")
	}
	if len(c.Topics) > 0 || c.TopicPattern != "" {
		p.add("topics", "several topics, or a pattern, are read by a group only: give groupID, or one topic")
	}
	if len(c.Partitions) > 0 && c.Partition != 0 {
		p.add("partition", "give either partition or partitions")
	}
	seen := map[int32]bool{}
	for _, n := range c.partitions() {
		if n < 0 || seen[n] {
			p.add("partitions", "partition %d is negative, or given twice", n)
		}
		seen[n] = true
	}
	if c.GroupInstanceID != "" || len(c.GroupBalancers) > 0 || c.OnAssigned != nil || c.OnRevoked != nil {
		p.add("groupID", "is missing, though settings of a group's member are given")
	}
}

func (c *ReaderConfig) partitions() []int32 {
	if len(c.Partitions) == 0 {
		return []int32{c.Partition}
	}
	return c.Partitions
}

// answerOverhead is what an answer may hold beside records: what is asked for stays below the
// largest answer accepted by that much.
const answerOverhead = 64 << 10

func (r *Reader) applySettings(cfg Config) {
	consume := cfg.Consumer
	r.backoff = fetch.Backoff{Min: consume.ReadBackoffMin, Max: max(consume.ReadBackoffMax, consume.ReadBackoffMin)}
	switch consume.OutOfRange {
	case "earliest":
		r.policy = fetch.Earliest
	case "latest":
		r.policy = fetch.Latest
	}
	limit := max(cfg.Net.MaxResponseBytes-answerOverhead, 1)
	r.rules = fetchRules{
		minBytes: min(consume.MinBytes, limit), maxBytes: min(consume.MaxBytes, limit),
		partBytes: min(consume.MaxPartitionBytes, limit), limit: limit,
	}
	if r.cfg.QueueBytes == 0 {
		r.cfg.QueueBytes = consume.MaxBytes
	}
	r.answers.most, r.plain.most = r.cfg.QueueBytes, 8<<20
	r.log, r.errLog = r.cfg.Logger, r.cfg.ErrorLogger
	for _, l := range []**slog.Logger{&r.log, &r.errLog} {
		if *l == nil {
			*l = cfg.Logger
		}
		if *l == nil {
			*l = slog.New(slog.DiscardHandler)
		}
	}
}

// starts are the partitions of a reader without a group, and where they start.
func (c *ReaderConfig) starts() (out []assignedAt) {
	start := c.StartOffset
	if start == 0 {
		start = FirstOffset
	}
	for _, id := range c.partitions() {
		out = append(out, assignedAt{topicPartition: topicPartition{c.Topic, id}, offset: start, leaderEpoch: -1})
	}
	return out
}
