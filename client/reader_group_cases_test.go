package client

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// read fetches one message, which must be the value numbered n.
func (h *hand) read(n int) Message {
	h.t.Helper()
	m, err := h.r.FetchMessage(h.ctx)
	require.NoError(h.t, err)
	require.Equal(h.t, fmt.Sprintf("value %d", n), string(m.Value))
	return m
}

// committed is what the group has committed of partitions of its topic.
func (c *crew) committed(partitions ...int32) []int64 {
	c.t.Helper()
	offsets, err := c.client.CommittedOffsets(c.ctx, c.name, c.topic, partitions...)
	require.NoError(c.t, err)
	return offsets
}

// commits notes the offsets of every OffsetCommit that comes, by partition.
type commits struct {
	mu   sync.Mutex
	sent map[int32][]int64
	n    int
}

func (c *crew) observeCommits() *commits {
	k := &commits{sent: map[int32][]int64{}}
	c.cluster.Observe(int16(kmsg.OffsetCommit), func(_ int32, req kmsg.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.n++
		for _, t := range req.(*kmsg.OffsetCommitRequest).Topics {
			for _, p := range t.Partitions {
				k.sent[p.Partition] = append(k.sent[p.Partition], p.Offset)
			}
		}
	})
	return k
}

func (k *commits) of(partition int32) []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]int64(nil), k.sent[partition]...)
}

func (k *commits) requests() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

// Case C5: what was read before a rebalance took the partition away is not committed after it.
func TestC5CommitsOfAnAssignmentThatEnded(t *testing.T) {
	for name, interval := range map[string]time.Duration{"at once": 0, "on the interval": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 2, func(c *Config) { c.Consumer.Group.CommitInterval = interval })
			k := c.observeCommits()
			c.writeAll(2, 0, 10)
			one := c.member(ReaderConfig{})
			old := map[int32]Message{}
			for len(old) < 2 {
				m, err := one.r.FetchMessage(c.ctx)
				require.NoError(t, err)
				old[m.Partition] = m
			}
			two := c.member(ReaderConfig{})
			c.shared([]int{1, 1}, one, two)
			moved, kept := two.holding()[0].Partition, one.holding()[0].Partition
			before := k.of(moved)
			err := one.r.CommitMessages(c.ctx, old[moved], old[kept])
			if interval == 0 {
				var stale *StaleCommitError
				require.ErrorAs(t, err, &stale)
				require.Equal(t, []TopicPartition{{"in", moved}}, stale.Partitions)
			} else {
				require.NoError(t, err)
			}
			require.EqualValues(t, 1, one.r.Stats().StaleCommits)
			c.eventually(func() bool { return c.committed(kept)[0] == old[kept].Offset+1 }, func() string { return "the other partition is committed" })
			require.Equal(t, before, k.of(moved), "nothing was sent")
			require.EqualValues(t, moved, two.read(0).Partition, "and it is read again")
		})
	}
}

// Case C6: only what was marked is committed, whatever else was fetched or handed over.
func TestC6OnlyWhatIsMarkedIsCommitted(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, func(c *Config) { c.Consumer.Group.CommitInterval = time.Hour })
	c.writeAll(1, 0, 100)
	one := c.member(ReaderConfig{})
	var fourth Message
	for i := range 10 {
		if m := one.read(i); i == 3 {
			fourth = m
		}
	}
	require.NoError(t, one.r.CommitMessages(c.ctx, fourth))
	require.NoError(t, one.r.CommitMessages(c.ctx), "nothing")
	require.NoError(t, one.r.Close())
	require.Equal(t, []int64{4}, c.committed(0))
	c.member(ReaderConfig{}).read(4)
}

// A log that was cut back, or made again, is read from there on, and what is dealt with of it is
// committed, though the group had committed later offsets of what is gone.
func TestCommitsOfALogThatWasCutBack(t *testing.T) {
	for name, cut := range map[string]func(*Reader, *partition){
		"cut": func(r *Reader, p *partition) {
			p.Next = 3
			r.queueMoveLocked(p)
			r.looseLocked(p, false)
		},
		"made again": func(r *Reader, p *partition) {
			r.policy = fetch.Earliest
			r.restartLocked(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, nil)
			c.writeAll(1, 0, 20)
			one := c.member(ReaderConfig{})
			var m Message
			for i := range 20 {
				m = one.read(i)
			}
			require.NoError(t, one.r.CommitMessages(c.ctx, m))
			require.Equal(t, []int64{20}, c.committed(0))
			one.r.mu.Lock()
			cut(one.r, one.r.parts[0])
			one.r.mu.Unlock()
			m, err := one.r.FetchMessage(c.ctx)
			require.NoError(t, err)
			require.Less(t, m.Offset, int64(4))
			require.NoError(t, one.r.CommitMessages(c.ctx, m))
			require.Equal(t, []int64{m.Offset + 1}, c.committed(0))
		})
	}
}

// Case C7: partitions and topics that are added while a group runs are read from their beginning,
// though it starts at the end otherwise.
func TestC7PartitionsAndTopicsAddedWhileRunning(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, nil)
	c.writeAll(1, 0, 5)
	h := c.works(ReaderConfig{TopicPattern: "in|in[0-9]", StartOffset: LastOffset})
	c.shared([]int{1}, h)
	c.client.setPartitions(t, c.ctx, "in", 3)
	require.NoError(t, c.client.RefreshMetadata(c.ctx, "in"))
	c.writeTo("in", 2, values(100, 150))
	require.NoError(t, c.cluster.CreateTopic("in2", 2, nil))
	require.NoError(t, c.cluster.CreateTopic("xin2", 1, nil))
	c.writeTo("in2", 1, values(200, 210))
	c.writeTo("xin2", 0, values(200, 210))
	c.shared([]int{5}, h)
	c.writeTo("in", 0, values(5, 6))
	require.Zero(t, c.total(61))
	c.mu.Lock()
	require.Equal(t, 1, c.seen["in/0/value 5"])
	c.mu.Unlock()
	require.NoError(t, c.cluster.DeleteTopic("in2"))
	c.shared([]int{3}, h)
	c.writeTo("in", 1, values(300, 310))
	c.total(71)
	h.leave()
}

func (c *Client) setPartitions(t *testing.T, ctx context.Context, topic string, n int32) {
	req := kmsg.NewPtrCreatePartitionsRequest()
	one := kmsg.NewCreatePartitionsRequestTopic()
	one.Topic, one.Count = topic, n
	req.Topics, req.TimeoutMillis = append(req.Topics, one), 5000
	require.NoError(t, c.askController(ctx, req, func(r kmsg.Response) error {
		return wire.ErrorFor(r.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
	}))
}

func TestWhereAGroupStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		start int64
		first int
		known int64 // committed before anything was read
	}{
		"at the first message":       {FirstOffset, 0, 0},
		"by default":                 {0, 0, 0},
		"at the end":                 {LastOffset, 20, 20},
		"at an offset":               {7, 7, 7},
		"where the group has got to": {LastOffset, 12, 12},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, nil)
			c.writeAll(1, 0, 20)
			if name == "where the group has got to" {
				h := c.member(ReaderConfig{})
				for i := range 12 {
					m := h.read(i)
					require.NoError(t, h.r.CommitMessages(c.ctx, m))
				}
				require.NoError(t, h.r.Close())
			}
			h := c.member(ReaderConfig{StartOffset: tc.start})
			c.shared([]int{1}, h)
			require.Equal(t, []int64{tc.known}, c.committed(0), "committed before anything is read")
			require.NoError(t, h.r.Close())
			c.writeAll(1, 20, 30)
			c.member(ReaderConfig{StartOffset: LastOffset}).read(tc.first)
		})
	}
}

func TestReadMessageCommits(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, nil)
	c.writeAll(1, 0, 10)
	h := c.member(ReaderConfig{})
	for i := range 4 {
		m, err := h.r.ReadMessage(c.ctx)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("value %d", i), string(m.Value))
		require.Equal(t, []int64{int64(i) + 1}, c.committed(0))
	}
	meta := h.r.GroupMetadata()
	require.Equal(t, "crew", meta.GroupID)
	require.NotEmpty(t, meta.MemberID)
	require.EqualValues(t, 1, meta.GenerationID)
	require.Error(t, h.r.SetOffset(0))
	require.ErrorIs(t, h.r.SetPartitionOffset(0, 3), ErrGroupOffsets)
	require.ErrorIs(t, h.r.SetOffsetAt(c.ctx, time.Now()), ErrGroupOffsets)
	m, err := h.r.FetchMessage(c.ctx)
	require.NoError(t, err)
	require.NoError(t, h.r.Close())
	require.ErrorIs(t, h.r.CommitMessages(c.ctx, m), io.ErrClosedPipe)
	_, err = h.r.ReadMessage(c.ctx)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, h.r.Close())
	require.Equal(t, []int64{4}, c.committed(0))
}

// ReadMessage in the middle of a rebalance: what would be read again by another member is not
// returned, so that nothing is read twice while nobody dies.
func TestReadMessageReturnsOnlyWhatIsCommitted(t *testing.T) {
	c := newCrew(t, broker.Options{}, 4, nil)
	c.writeAll(4, 0, 200)
	var mu sync.Mutex
	seen := map[string]int{}
	reading := func(h *hand) {
		defer close(h.done)
		for {
			m, err := h.r.ReadMessage(context.Background())
			if err != nil {
				return
			}
			mu.Lock()
			seen[fmt.Sprintf("%d/%d", m.Partition, m.Offset)]++
			mu.Unlock()
		}
	}
	var hands []*hand
	for range 3 {
		h := c.member(ReaderConfig{})
		hands = append(hands, h)
		go reading(h)
	}
	c.shared([]int{1, 1, 2}, hands...)
	c.eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == 800
	}, func() string { return "everything is read" })
	for _, h := range hands {
		h.leave()
	}
	for at, times := range seen {
		require.Equal(t, 1, times, at)
	}
	require.Equal(t, []int64{200, 200, 200, 200}, c.committed(0, 1, 2, 3))
}

func TestCommitsOnTheInterval(t *testing.T) {
	c := newCrew(t, broker.Options{}, 2, func(c *Config) { c.Consumer.Group.CommitInterval = 50 * time.Millisecond })
	k := c.observeCommits()
	c.writeAll(2, 0, 300)
	began := time.Now()
	h := c.works(ReaderConfig{})
	c.total(600)
	c.eventually(func() bool { o := c.committed(0, 1); return o[0] == 300 && o[1] == 300 }, func() string { return fmt.Sprint(c.committed(0, 1)) })
	ticks := int(time.Since(began)/(50*time.Millisecond)) + 2
	require.LessOrEqual(t, k.requests(), ticks, "merged: 600 messages were marked")
	for p := range int32(2) {
		sent := k.of(p)
		require.IsIncreasing(t, sent)
	}
	h.leave()
}

func TestCommitsThatAreConcurrentShareRequests(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, nil)
	k := c.observeCommits()
	c.writeAll(1, 0, 200)
	h := c.member(ReaderConfig{})
	var all sync.WaitGroup
	c.shared([]int{1}, h)
	before := k.requests()
	c.cluster.Delay(int16(kmsg.OffsetCommit), 30*time.Millisecond)
	var failed atomic.Int64
	for i := range 200 {
		m := h.read(i)
		all.Go(func() {
			if h.r.CommitMessages(c.ctx, m) != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	require.Zero(t, failed.Load())
	require.Less(t, k.requests()-before, 60)
	require.IsNonDecreasing(t, k.of(0))
	require.Equal(t, []int64{200}, c.committed(0))
}

func TestCommitsAreRetried(t *testing.T) {
	for _, code := range []int16{14, 15, 16, 7, 3} {
		t.Run(wire.ErrorFor(code).Error(), func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, nil)
			c.writeAll(1, 0, 10)
			h := c.member(ReaderConfig{})
			m := h.read(0)
			fault := c.cluster.Fail(broker.Failure{Key: int16(kmsg.OffsetCommit), Code: code, Count: 3})
			require.NoError(t, h.r.CommitMessages(c.ctx, m))
			require.Equal(t, 3, fault.Hits())
			require.Equal(t, []int64{1}, c.committed(0))
		})
	}
	t.Run("not when it is of no use", func(t *testing.T) {
		c := newCrew(t, broker.Options{}, 1, nil)
		c.writeAll(1, 0, 10)
		h := c.member(ReaderConfig{})
		m := h.read(0)
		c.cluster.Fail(broker.Failure{Key: int16(kmsg.OffsetCommit), Code: 29})
		err := h.r.CommitMessages(c.ctx, m)
		require.ErrorIs(t, err, wire.ErrTopicAuthorizationFailed)
		require.ErrorContains(t, err, `topic "in" partition 0`)
		defer c.cluster.Fail(broker.Failure{Key: int16(kmsg.OffsetCommit), Code: 14, Count: -1}).Remove()
		ctx, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, h.r.CommitMessages(ctx, m), context.DeadlineExceeded)
	})
}

// A member whose place is lost: what it holds goes on only when it has joined anew.
func TestMembersThatAreForgottenJoinAgain(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  kmsg.Key
		code int16
	}{
		{"a heartbeat of a session that ended", kmsg.Heartbeat, 25},
		{"a heartbeat of a generation that ended", kmsg.Heartbeat, 22},
		{"a commit of a session that ended", kmsg.OffsetCommit, 25},
		{"a commit of a generation that ended", kmsg.OffsetCommit, 22},
		{"a join of a session that ended", kmsg.JoinGroup, 25},
		{"a sync of a session that ended", kmsg.SyncGroup, 25},
		{"a sync of a generation that ended", kmsg.SyncGroup, 22},
		{"a sync while somebody joins", kmsg.SyncGroup, 27},
		{"a join at another coordinator", kmsg.JoinGroup, 16},
		{"a join while the coordinator loads", kmsg.JoinGroup, 14},
		{"offsets while the coordinator loads", kmsg.OffsetFetch, 14},
		{"offsets while a transaction is open", kmsg.OffsetFetch, 88},
		{"offsets of a topic that the coordinator does not know yet", kmsg.OffsetFetch, 3},
		{"a coordinator that is being elected", kmsg.FindCoordinator, 15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 2, nil)
			c.writeAll(2, 0, 100)
			join := tc.key != kmsg.Heartbeat && tc.key != kmsg.OffsetCommit
			var fault *broker.Fault
			if join {
				fault = c.cluster.Fail(broker.Failure{Key: int16(tc.key), Code: tc.code, Count: 2})
			}
			h := c.works(ReaderConfig{})
			c.shared([]int{2}, h)
			if !join {
				fault = c.cluster.Fail(broker.Failure{Key: int16(tc.key), Code: tc.code, Count: 1})
				require.NoError(t, fault.Wait(c.ctx, 1))
			}
			c.eventually(func() bool { return fault.Hits() > 0 }, func() string { return "the fault" })
			c.writeAll(2, 100, 200)
			c.total(400)
			c.shared([]int{2}, h)
			h.leave()
			require.Equal(t, []int64{200, 200}, c.committed(0, 1))
		})
	}
}

func TestWhatEndsAMembership(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  kmsg.Key
		err  *wire.KafkaError
		say  string
	}{
		{"no permission to join", kmsg.JoinGroup, wire.ErrGroupAuthorizationFailed, "READ on the group"},
		{"no permission to find the coordinator", kmsg.FindCoordinator, wire.ErrGroupAuthorizationFailed, "ACL"},
		{"a full group", kmsg.JoinGroup, wire.ErrGroupMaxSizeReached, "group.max.size"},
		{"other assignors", kmsg.JoinGroup, wire.ErrInconsistentGroupProtocol, "consumer.group.balancers"},
		{"no permission for the offsets of a topic", kmsg.OffsetFetch, wire.ErrTopicAuthorizationFailed, "offsets committed"},
		{"no permission to describe a topic", kmsg.Metadata, wire.ErrTopicAuthorizationFailed, `topic "in"`},
		{"taken over by another of the same name", kmsg.Heartbeat, wire.ErrFencedInstanceID, "group.instance.id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, nil)
			h := c.member(ReaderConfig{Topics: []string{"in"}})
			if tc.key == kmsg.Heartbeat {
				c.shared([]int{1}, h)
			} else {
				require.NoError(t, h.r.Close())
				_ = h.c.Close()
				c.cluster.Fail(broker.Failure{Key: int16(tc.key), Code: tc.err.Code, Count: -1, Topic: map[bool]string{true: "in"}[tc.key == kmsg.Metadata]})
				h = c.member(ReaderConfig{})
			}
			if tc.key == kmsg.Heartbeat {
				c.cluster.Fail(broker.Failure{Key: int16(tc.key), Code: tc.err.Code, Count: -1})
			}
			for range 2 {
				_, err := h.r.FetchMessage(c.ctx)
				require.ErrorIs(t, err, tc.err)
				require.ErrorContains(t, err, tc.say)
				require.ErrorContains(t, err, `group "crew"`)
			}
			require.ErrorIs(t, h.r.CommitMessages(c.ctx, Message{Topic: "in"}), tc.err)
			require.NoError(t, h.r.Close())
			require.Equal(t, io.ErrClosedPipe, h.r.CommitMessages(c.ctx, Message{Topic: "in"}))
		})
	}
	t.Run("a topic that does not exist", func(t *testing.T) {
		c := newCrew(t, broker.Options{}, 1, func(c *Config) { c.Metadata.Retry.Max = 2 })
		_, err := c.member(ReaderConfig{Topics: []string{"in", "out"}}).r.FetchMessage(c.ctx)
		require.ErrorIs(t, err, ErrTopicUnknown)
		require.ErrorContains(t, err, `"out"`)
	})
}

func TestAKilledMembersPartitionsGoToOthers(t *testing.T) {
	c := newCrew(t, broker.Options{}, 4, func(c *Config) { c.Consumer.Group.SessionTimeout = 500 * time.Millisecond })
	c.outlivesAMember()
}

func TestCoordinatorsThatMoveOrDie(t *testing.T) {
	c := newCrew(t, broker.Options{Nodes: 3}, 6, nil)
	c.outlivesItsCoordinators()
}

// A cooperative member goes on reading what it keeps, however long the rebalance takes; an eager
// one does not.
func TestWhatAMemberKeepsIsReadThroughARebalance(t *testing.T) {
	for _, balancer := range []string{"cooperative-sticky", "sticky"} {
		t.Run(balancer, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 2, func(c *Config) {
				// Commits that are waited for wait: coordinators refuse them until the leader has assigned.
				c.Consumer.Group.Balancers, c.Consumer.Group.CommitInterval = Balancers{balancer}, 10*time.Millisecond
			})
			one := c.works(ReaderConfig{})
			c.shared([]int{2}, one)
			c.cluster.StallKey(int16(kmsg.SyncGroup), 0)
			syncs := c.cluster.Requests(int16(kmsg.SyncGroup))
			two := c.works(ReaderConfig{})
			require.NoError(t, c.cluster.AwaitRequests(c.ctx, int16(kmsg.SyncGroup), syncs+2))
			c.writeAll(2, 0, 10)
			if balancer == "cooperative-sticky" {
				c.total(20)
				require.Len(t, one.holding(), 2)
			} else {
				require.Empty(t, one.holding())
				c.total(0)
			}
			c.cluster.Resume()
			c.shared([]int{1, 1}, one, two)
			c.total(20)
			one.leave()
			two.leave()
		})
	}
}

func TestStaticMembersComeBackWithoutARebalance(t *testing.T) {
	// The embedded broker rebalances when what a member says of itself differs, which range's does
	// not; Kafka does when another assignor is chosen for it.
	c := newCrew(t, broker.Options{}, 2, func(c *Config) { c.Consumer.Group.Balancers = Balancers{"range"} })
	c.writeAll(2, 0, 10)
	one, two := c.works(ReaderConfig{GroupInstanceID: "one"}), c.works(ReaderConfig{GroupInstanceID: "two"})
	c.shared([]int{1, 1}, one, two)
	c.total(20)
	rounds := two.assignments()
	held := one.holding()
	leaves := c.cluster.Requests(int16(kmsg.LeaveGroup))
	one.leave()
	require.Equal(t, leaves, c.cluster.Requests(int16(kmsg.LeaveGroup)))
	one = c.works(ReaderConfig{GroupInstanceID: "one"})
	c.shared([]int{1, 1}, one, two)
	require.Equal(t, held, one.holding())
	c.writeAll(2, 10, 20)
	c.total(40)
	require.Equal(t, rounds, two.assignments(), "the other one did not notice")

	thief := c.works(ReaderConfig{GroupInstanceID: "two"})
	<-two.done
	c.mu.Lock()
	require.Len(t, c.bad, 1)
	require.Contains(t, c.bad[0], "FENCED_INSTANCE_ID")
	require.Contains(t, c.bad[0], `"two"`)
	c.bad = nil
	c.mu.Unlock()
	c.shared([]int{1, 1}, one, thief)
	c.writeAll(2, 20, 30)
	c.total(60)
	one.leave()
	thief.leave()
}

func TestHooksOfAGroup(t *testing.T) {
	c := newCrew(t, broker.Options{}, 2, nil)
	c.writeAll(2, 0, 10)
	var mu sync.Mutex
	last := map[int32]Message{}
	var one *hand
	errs := make(chan error, 10)
	var panics atomic.Int64
	one = c.member(ReaderConfig{
		OnAssigned: func(int32, []TopicPartition) {
			panics.Add(1)
			panic("mine")
		},
		OnRevoked: func(_ int32, parts []TopicPartition) {
			for _, p := range parts {
				mu.Lock()
				m := last[p.Partition]
				mu.Unlock()
				errs <- one.r.CommitMessages(c.ctx, m)
			}
			panics.Add(1)
			panic("mine too")
		},
	})
	for range 20 {
		m, err := one.r.FetchMessage(c.ctx)
		require.NoError(t, err)
		mu.Lock()
		last[m.Partition] = m
		mu.Unlock()
	}
	two := c.member(ReaderConfig{})
	c.eventually(func() bool { return len(two.holding()) == 1 }, func() string { return "shared" })
	require.NoError(t, <-errs)
	at := two.holding()[0].Partition
	require.Equal(t, []int64{10}, c.committed(at), "what was dealt with is committed by who gives it up")
	require.NoError(t, one.r.Close())
	require.NoError(t, <-errs)
	require.Equal(t, []int64{10, 10}, c.committed(0, 1))
	require.GreaterOrEqual(t, panics.Load(), int64(3))
	require.Equal(t, panics.Load(), one.r.Stats().Panics)
}

func TestCommitInTheHookOfAMemberThatWasThrownOut(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, nil)
	c.writeAll(1, 0, 10)
	var one *hand
	var first Message
	errs := make(chan error, 1)
	one = c.member(ReaderConfig{OnRevoked: func(int32, []TopicPartition) {
		select {
		case errs <- one.r.CommitMessages(c.ctx, first):
		default:
		}
	}})
	first = one.read(0)
	c.cluster.Fail(broker.Failure{Key: int16(kmsg.Heartbeat), Code: 25})
	var stale *StaleCommitError
	require.ErrorAs(t, <-errs, &stale)
	again := one.read(0)
	require.NoError(t, one.r.CommitMessages(c.ctx, again))
}

func TestClosingAMemberIsBounded(t *testing.T) {
	for name, before := range map[string]func(*crew){
		"while the coordinator does not answer commits": func(c *crew) { c.cluster.StallKey(int16(kmsg.OffsetCommit), 0) },
		"while it does not answer at all":               func(c *crew) { c.cluster.StallKey(int16(kmsg.LeaveGroup), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, func(c *Config) {
				c.Consumer.Group.CommitInterval, c.Consumer.Group.RebalanceTimeout = time.Hour, 300*time.Millisecond
			})
			c.writeAll(1, 0, 10)
			h := c.member(ReaderConfig{})
			m := h.read(0)
			require.NoError(t, h.r.CommitMessages(c.ctx, m))
			before(c)
			began := time.Now()
			require.NoError(t, h.r.Close())
			require.Less(t, time.Since(began), drainWithin)
			c.cluster.Resume()
		})
	}
	t.Run("while it waits for others", func(t *testing.T) {
		c := newCrew(t, broker.Options{}, 1, nil)
		one := c.member(ReaderConfig{})
		c.shared([]int{1}, one)
		c.cluster.StallKey(int16(kmsg.Heartbeat), 0) // it does not notice, so that the other one waits
		joins := c.cluster.Requests(int16(kmsg.JoinGroup))
		two := c.member(ReaderConfig{})
		require.NoError(t, c.cluster.AwaitRequests(c.ctx, int16(kmsg.JoinGroup), joins+1))
		began := time.Now()
		require.NoError(t, two.r.Close())
		require.Less(t, time.Since(began), 2*time.Second)
		c.cluster.Resume()
	})
}

func TestWhatMembersTellTheCoordinator(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, func(c *Config) {
		g := &c.Consumer.Group
		g.Balancers, g.SessionTimeout, g.RebalanceTimeout, g.HeartbeatInterval = Balancers{"roundrobin", "range"}, 11*time.Second, 22*time.Second, 25*time.Millisecond
	})
	join := make(chan *kmsg.JoinGroupRequest, 100)
	c.cluster.Observe(int16(kmsg.JoinGroup), func(_ int32, req kmsg.Request) { join <- req.(*kmsg.JoinGroupRequest) })
	h := c.member(ReaderConfig{})
	req := <-join
	require.Equal(t, "roundrobin", req.Protocols[0].Name)
	require.Equal(t, "range", req.Protocols[1].Name)
	require.EqualValues(t, 11_000, req.SessionTimeoutMillis)
	require.EqualValues(t, 22_000, req.RebalanceTimeoutMillis)
	c.shared([]int{1}, h)
	began, beats := time.Now(), c.cluster.Requests(int16(kmsg.Heartbeat))
	require.NoError(t, c.cluster.AwaitRequests(c.ctx, int16(kmsg.Heartbeat), beats+10))
	require.Greater(t, time.Since(began), 200*time.Millisecond)
	require.NoError(t, h.r.Close())

	h = c.member(ReaderConfig{
		GroupBalancers: []string{"sticky"}, SessionTimeout: 9 * time.Second, RebalanceTimeout: 8 * time.Second, HeartbeatInterval: time.Second,
	})
	for req.Protocols[0].Name != "sticky" {
		req = <-join
	}
	require.Len(t, req.Protocols, 1)
	require.EqualValues(t, 9_000, req.SessionTimeoutMillis)
	require.EqualValues(t, 8_000, req.RebalanceTimeoutMillis)
	require.Equal(t, time.Second, h.r.group.set.HeartbeatInterval)
	_, err := c.client.NewReader(ReaderConfig{GroupID: "g", Topic: "in", HeartbeatInterval: time.Hour})
	var problems *ConfigError
	require.ErrorAs(t, err, &problems)
	require.ErrorContains(t, err, "session timeout")
}

func TestClosingDuringARebalanceCommits(t *testing.T) {
	c := newCrew(t, broker.Options{}, 2, func(c *Config) { c.Consumer.Group.CommitInterval = time.Hour })
	c.writeAll(2, 0, 10)
	one := c.member(ReaderConfig{})
	for range 20 {
		m, err := one.r.FetchMessage(c.ctx)
		require.NoError(t, err)
		require.NoError(t, one.r.CommitMessages(c.ctx, m))
	}
	c.cluster.StallKey(int16(kmsg.SyncGroup), 0)
	syncs := c.cluster.Requests(int16(kmsg.SyncGroup))
	two := c.member(ReaderConfig{})
	require.NoError(t, c.cluster.AwaitRequests(c.ctx, int16(kmsg.SyncGroup), syncs+2))
	closed := make(chan error, 1)
	go func() { closed <- one.r.Close() }()
	c.eventually(func() bool { return len(one.r.PartitionStates()) == 0 }, func() string { return "given up" })
	c.cluster.Resume()
	require.NoError(t, <-closed)
	require.Equal(t, []int64{10, 10}, c.committed(0, 1))
	c.shared([]int{2}, two)
}
