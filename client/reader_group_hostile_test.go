package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/rawserver"
)

// coordination is a scripted broker, node 0, which leads topic "in", one message long, and coordinates
// every group. It agrees with everything, but for what a test has it say otherwise.
type coordination struct {
	addr string
	beat time.Duration // that it asks of members of the consumer protocol
	// twist may change the good answer to a request of key, or answer otherwise.
	key   kmsg.Key
	twist func(req rawserver.Request, good kmsg.Response) rawserver.Reply
	// instead may answer any request otherwise; nil, or its nil: it does not.
	instead  func(req rawserver.Request) *rawserver.Reply
	features map[string]int16 // that it says are finalised; on pipes only

	mu    sync.Mutex
	asked map[int16]int
	bad   int // how many answers are twisted still; negative: all
}

// from has it lie n times from now on; negative: always.
func (c *coordination) from(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad = n
	clear(c.asked)
}

func (c *coordination) times(key kmsg.Key) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[int16(key)]
}

// start runs it, and a member of a group in the protocol given.
func (c *coordination) start(t *testing.T, protocol string) (*Reader, context.Context) {
	ready := make(chan struct{})
	srv, err := rawserver.Start(rawserver.Script{Handle: func(req rawserver.Request) rawserver.Reply {
		<-ready
		return c.handle(req)
	}})
	require.NoError(t, err)
	c.addr, c.beat = srv.Addr(), 5*time.Millisecond
	close(ready)
	t.Cleanup(srv.Close)
	cfg := NewConfig()
	cfg.Consumer.MaxWait = 10 * time.Millisecond
	cfg.Consumer.Group.Protocol, cfg.Consumer.Group.HeartbeatInterval, cfg.Consumer.Group.SessionTimeout = protocol, 5*time.Millisecond, 500*time.Millisecond
	cfg.Consumer.Group.RebalanceTimeout = time.Second
	cfg.Admin.Timeout = 2 * time.Second
	cfg.Admin.Retry = RetryConfig{Max: 10, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}
	cfg.Metadata.Retry = RetryConfig{Max: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return c.member(t, cfg), ctx
}

// member is a member of the group of the scripted broker, which listens by now.
func (c *coordination) member(t *testing.T, cfg *Config) *Reader {
	r, err := NewReader(ReaderConfig{Topic: "in", Brokers: []string{c.addr}, Config: cfg, GroupID: "g"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (c *coordination) handle(raw rawserver.Request) rawserver.Reply {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[int16]int{}
	}
	c.asked[raw.Key]++
	twisted := raw.Key == int16(c.key) && c.bad != 0
	if twisted && c.bad > 0 {
		c.bad--
	}
	c.mu.Unlock()
	if c.instead != nil {
		if reply := c.instead(raw); reply != nil {
			return *reply
		}
	}
	resp, reply := c.agree(raw)
	if resp == nil {
		return rawserver.Reply{Close: true}
	}
	resp.SetVersion(raw.Version)
	if twisted {
		return c.twist(raw, resp)
	}
	reply.Body = resp.AppendTo([]byte{})
	return reply
}

// agree is the good answer.
func (c *coordination) agree(raw rawserver.Request) (resp kmsg.Response, how rawserver.Reply) {
	switch req := raw.Decode().(type) {
	case *kmsg.MetadataRequest:
		m := metadataOf(c.addr)
		m.Topics[0].TopicID = scriptTopicID
		return m, how
	case *kmsg.FindCoordinatorRequest:
		one := kmsg.NewFindCoordinatorResponseCoordinator()
		b := brokerAt(0, c.addr)
		one.Key, one.Host, one.Port = "g", b.Host, b.Port
		r := kmsg.NewPtrFindCoordinatorResponse()
		r.Host, r.Port, r.Coordinators = b.Host, b.Port, append(r.Coordinators, one)
		return r, how
	case *kmsg.JoinGroupRequest:
		r := kmsg.NewPtrJoinGroupResponse()
		r.Generation, r.Protocol, r.LeaderID, r.MemberID = 1, &req.Protocols[0].Name, "somebody", "me"
		return r, how
	case *kmsg.SyncGroupRequest:
		r := kmsg.NewPtrSyncGroupResponse()
		r.MemberAssignment = assign.EncodeAssignment([]assign.TopicPartitions{{Topic: "in", Partitions: []int32{0}}})
		return r, how
	case *kmsg.HeartbeatRequest:
		return kmsg.NewPtrHeartbeatResponse(), how
	case *kmsg.LeaveGroupRequest:
		return kmsg.NewPtrLeaveGroupResponse(), how
	case *kmsg.ConsumerGroupHeartbeatRequest:
		topic := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
		topic.TopicID, topic.Partitions = scriptTopicID, []int32{0}
		a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
		a.Topics = append(a.Topics, topic)
		r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		r.MemberID, r.MemberEpoch, r.HeartbeatIntervalMillis, r.Assignment = &req.MemberID, 1, int32(c.beat.Milliseconds()), &a
		return r, how
	case *kmsg.OffsetFetchRequest:
		return committedNothing(), how
	case *kmsg.OffsetCommitRequest:
		p := kmsg.NewOffsetCommitResponseTopicPartition()
		topic := kmsg.NewOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID, topic.Partitions = "in", scriptTopicID, append(topic.Partitions, p)
		r := kmsg.NewPtrOffsetCommitResponse()
		r.Topics = append(r.Topics, topic)
		return r, how
	case *kmsg.ListOffsetsRequest:
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = 0
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = "in", append(topic.Partitions, p)
		r := kmsg.NewPtrListOffsetsResponse()
		r.Topics = append(r.Topics, topic)
		return r, how
	case *kmsg.FetchRequest:
		answer := c.fetched(req, &how) // which may change how
		return answer, how
	}
	return nil, how
}

// oneMessage is the log.
var oneMessage = func() []byte {
	raw := bytes.Clone(emptied(0, 0))
	raw = append(raw, 2*7, 0, 0, 0, 1, 2, 'v', 0) // its length, attributes, deltas, no key, a value, no headers
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[57:], 1)
	return seal(raw)
}()

func committedNothing() *kmsg.OffsetFetchResponse {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Offset, p.LeaderEpoch = -1, -1
	topic := kmsg.NewOffsetFetchResponseGroupTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "in", scriptTopicID, append(topic.Partitions, p)
	g := kmsg.NewOffsetFetchResponseGroup()
	g.Group, g.Topics = "g", append(g.Topics, topic)
	r := kmsg.NewPtrOffsetFetchResponse()
	r.Groups = append(r.Groups, g)
	return r
}

func (c *coordination) fetched(req *kmsg.FetchRequest, how *rawserver.Reply) kmsg.Response {
	r := kmsg.NewPtrFetchResponse()
	for _, asked := range req.Topics {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, one := range asked.Partitions {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.HighWatermark, p.LastStableOffset, p.RecordBatches = one.Partition, 1, 1, []byte{}
			if one.FetchOffset == 0 {
				p.RecordBatches = oneMessage
			} else {
				how.Delay = time.Duration(req.MaxWaitMillis) * time.Millisecond
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

// lie is an answer that is not what it should be.
type lie struct {
	what string
	say  func(req rawserver.Request, good kmsg.Response) rawserver.Reply
	dead bool // it looks like a broker that is down, which is waited for
}

func bodyWith(change func(body []byte) []byte) func(rawserver.Request, kmsg.Response) rawserver.Reply {
	return func(_ rawserver.Request, good kmsg.Response) rawserver.Reply {
		return rawserver.Reply{Body: change(good.AppendTo([]byte{}))}
	}
}

// another changes what a good answer says.
func another[T kmsg.Response](what string, change func(T)) lie {
	return lie{what: what, say: func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
		change(good.(T))
		return rawserver.Respond(req, good)
	}}
}

func (l lie) likeDead() lie {
	l.dead = true
	return l
}

// lies are those that can be told in place of any answer.
func lies() []lie {
	raw := func(b ...byte) func(rawserver.Request, kmsg.Response) rawserver.Reply {
		return func(rawserver.Request, kmsg.Response) rawserver.Reply { return rawserver.Reply{Raw: b} }
	}
	return []lie{
		{what: "cut short", say: bodyWith(func(b []byte) []byte { return b[:len(b)/2] })},
		{what: "nothing", say: bodyWith(func([]byte) []byte { return []byte{} })},
		{what: "counts below zero, or of thousands of millions", say: bodyWith(func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) })},
		{what: "more than all", say: bodyWith(func(b []byte) []byte { return append(b[:len(b)-1], 0x7f, 0xff, 0xff, 0xff, 0x7f) })},
		{what: "a length of 2 GiB", say: raw(0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0)},
		{what: "a negative length", say: raw(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)},
		{what: "another correlation id", say: func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
			return rawserver.Reply{Raw: rawserver.FrameAs(req, req.Corr+7, good.AppendTo(nil))}
		}},
		{what: "half an answer, and the connection closes", dead: true, say: func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
			whole := rawserver.Frame(req, good.AppendTo(nil))
			return rawserver.Reply{Raw: whole[:len(whole)-1], Close: true}
		}},
	}
}

// blob are bytes that a member hands on: a count of topics, and what follows.
func blob(version int16, topics uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(version))
	return append(binary.BigEndian.AppendUint32(b, topics), rest...)
}

// ownLies are lies about what only one request's answer says.
func ownLies() map[kmsg.Key][]lie {
	sync := func(what string, assignment []byte) lie {
		return another(what, func(r *kmsg.SyncGroupResponse) { r.MemberAssignment = assignment })
	}
	topicIn := []byte{0, 2, 'i', 'n'}
	return map[kmsg.Key][]lie{
		kmsg.JoinGroup: {
			another("an assignor that was not offered", func(r *kmsg.JoinGroupResponse) { r.Protocol = kmsg.StringPtr("evil\nassignor") }),
			another("no assignor", func(r *kmsg.JoinGroupResponse) { r.Protocol = nil }),
			another("generation -7", func(r *kmsg.JoinGroupResponse) { r.Generation = -7 }),
			another("no member id", func(r *kmsg.JoinGroupResponse) { r.MemberID = "" }),
		},
		kmsg.SyncGroup: {
			sync("an assignment of a negative count", blob(0, 1<<32-2)),
			sync("an assignment of two thousand million topics", blob(0, 1<<31-1)),
			sync("an assignment of a thousand million partitions", blob(0, 1, append(topicIn, 0x3f, 0xff, 0xff, 0xff)...)),
			sync("an assignment of a negative partition", blob(0, 1, append(topicIn, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf0)...)),
			sync("an assignment cut short", blob(0, 1, 0, 9, 'i')),
		},
		kmsg.ConsumerGroupHeartbeat: {
			another("epoch 0", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.MemberEpoch = 0 }),
			another("epoch -9", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.MemberEpoch = -9 }),
			another("a topic without id", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.Assignment.Topics[0].TopicID = [16]byte{} }),
			another("a negative partition", func(r *kmsg.ConsumerGroupHeartbeatResponse) {
				r.Assignment.Topics[0].Partitions = []int32{math.MinInt32}
			}),
		},
		kmsg.OffsetFetch: {
			another("no offsets", func(r *kmsg.OffsetFetchResponse) { r.Groups[0].Topics = nil }),
			another("another group's", func(r *kmsg.OffsetFetchResponse) { r.Groups[0].Group = "other" }),
			another("no group", func(r *kmsg.OffsetFetchResponse) { r.Groups = nil }),
		},
		kmsg.OffsetCommit: {
			another("nothing of the partition", func(r *kmsg.OffsetCommitResponse) { r.Topics = nil }),
			another("another partition's", func(r *kmsg.OffsetCommitResponse) { r.Topics[0].Partitions[0].Partition = 77 }),
		},
		kmsg.FindCoordinator: {
			another("another group's coordinator", func(r *kmsg.FindCoordinatorResponse) { r.Coordinators[0].Key = "other" }),
			another("none", func(r *kmsg.FindCoordinatorResponse) { r.Coordinators = nil }),
			another("a node that the cluster does not list", func(r *kmsg.FindCoordinatorResponse) { r.Coordinators[0].NodeID = math.MaxInt32 }).likeDead(),
		},
	}
}

// worked reads the message and commits it.
func worked(ctx context.Context, r *Reader) error {
	m, err := r.FetchMessage(ctx)
	if err != nil {
		return err
	}
	return r.CommitMessages(ctx, m)
}

// A coordinator that lies once or twice is put up with; from one that always does comes an error that
// names it, after a few tries and within bounds of memory and time.
func TestHostileCoordinators(t *testing.T) {
	own := ownLies()
	for _, tc := range []struct {
		protocol string
		key      kmsg.Key
	}{
		{"classic", kmsg.FindCoordinator}, {"classic", kmsg.JoinGroup}, {"classic", kmsg.SyncGroup}, {"classic", kmsg.Heartbeat},
		{"classic", kmsg.OffsetFetch}, {"classic", kmsg.OffsetCommit},
		{"consumer", kmsg.ConsumerGroupHeartbeat}, {"consumer", kmsg.OffsetFetch}, {"consumer", kmsg.OffsetCommit},
	} {
		t.Run(fmt.Sprintf("%s %s", tc.protocol, tc.key.Name()), func(t *testing.T) {
			for _, l := range append(lies(), own[tc.key]...) {
				t.Run(l.what, func(t *testing.T) {
					c := &coordination{key: tc.key, twist: l.say}
					c.from(2)
					r, ctx := c.start(t, tc.protocol)
					require.NoError(t, worked(ctx, r), "after two")
					require.NoError(t, r.Close())
				})
				t.Run(l.what+", always", func(t *testing.T) { alwaysLying(t, tc.protocol, tc.key, l) })
			}
		})
	}
}

func alwaysLying(t *testing.T, protocol string, key kmsg.Key, l lie) {
	c := &coordination{key: key, twist: l.say}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.from(-1)
	r, ctx := c.start(t, protocol)
	began := time.Now()
	if l.dead {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	err := worked(ctx, r)
	if err == nil { // it lies to members only
		_, err = r.FetchMessage(ctx)
	}
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	if l.dead {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	} else {
		require.NoError(t, ctx.Err(), "%v", err)
		require.ErrorContains(t, err, `"g"`)
		require.NotContains(t, err.Error(), "\n")
	}
	require.Less(t, c.times(key), 80)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	t.Logf("%v, %d requests, %d bytes: %v", time.Since(began), c.times(key), after.TotalAlloc-before.TotalAlloc, err)
	began = time.Now()
	require.NoError(t, r.Close())
	require.Less(t, time.Since(began), 5*time.Second)
}

// leaveLies are what may be said to a member that leaves, beside the lies there are for any answer.
func leaveLies(protocol string) []lie {
	silence := lie{what: "nothing at all", say: func(rawserver.Request, kmsg.Response) rawserver.Reply { return rawserver.Reply{} }}
	if protocol == "consumer" {
		return []lie{
			silence,
			another("it does not know the member", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.ErrorCode = 25 }),
			another("another broker coordinates", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.ErrorCode = 16 }),
			another("an error that there is not", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.ErrorCode = math.MinInt16 }),
			another("epoch 5, and partitions", func(r *kmsg.ConsumerGroupHeartbeatResponse) { r.MemberEpoch = 5 }),
		}
	}
	member := func(code int16) kmsg.LeaveGroupResponseMember {
		m := kmsg.NewLeaveGroupResponseMember()
		m.MemberID, m.ErrorCode = "somebody else", code
		return m
	}
	return []lie{
		silence,
		another("it does not know the member", func(r *kmsg.LeaveGroupResponse) { r.ErrorCode = 25 }),
		another("another broker coordinates", func(r *kmsg.LeaveGroupResponse) { r.ErrorCode = 16 }),
		another("an error that there is not", func(r *kmsg.LeaveGroupResponse) { r.ErrorCode = math.MinInt16 }),
		another("somebody else has left", func(r *kmsg.LeaveGroupResponse) { r.Members = append(r.Members, member(0)) }),
		another("a thousand others could not", func(r *kmsg.LeaveGroupResponse) {
			r.Members = slices.Repeat([]kmsg.LeaveGroupResponseMember{member(82)}, 1000)
		}),
	}
}

// Whatever a coordinator answers to a member that leaves, Close returns: what was read is committed,
// and the group will do without a member that it no longer hears of.
func TestHostileCoordinatorsOfMembersThatLeave(t *testing.T) {
	for protocol, key := range map[string]kmsg.Key{"classic": kmsg.LeaveGroup, "consumer": kmsg.ConsumerGroupHeartbeat} {
		for _, l := range append(lies(), leaveLies(protocol)...) {
			t.Run(protocol+" "+l.what, func(t *testing.T) {
				t.Parallel()
				var left atomic.Int64
				c := &coordination{key: key, twist: func(req rawserver.Request, good kmsg.Response) rawserver.Reply {
					if beat, is := req.Decode().(*kmsg.ConsumerGroupHeartbeatRequest); is && beat.MemberEpoch >= 0 {
						return rawserver.Respond(req, good)
					}
					left.Add(1)
					return l.say(req, good)
				}}
				c.from(-1)
				r, ctx := c.start(t, protocol)
				require.NoError(t, worked(ctx, r))
				began := time.Now()
				require.NoError(t, r.Close())
				require.Less(t, time.Since(began), leaveWithin+5*time.Second)
				require.Positive(t, left.Load())
				require.Less(t, left.Load(), int64(20))
			})
		}
	}
}
