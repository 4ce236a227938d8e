package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// Groups of the consumer protocol (KIP-848), in which the coordinator assigns the partitions.

func newConsumerCrew(t testing.TB, o broker.Options, partitions int, change func(*Config)) *crew {
	return newCrew(t, o, partitions, func(c *Config) {
		c.Consumer.Group.Protocol = "consumer"
		if change != nil {
			change(c)
		}
	})
}

func TestAConsumerGroupSharesItsPartitions(t *testing.T) {
	for _, assignor := range []string{"", "uniform", "range"} {
		t.Run("assignor "+assignor, func(t *testing.T) {
			c := newConsumerCrew(t, broker.Options{Nodes: 3}, 6, func(c *Config) { c.Consumer.Group.RemoteAssignor = assignor })
			three := c.comesAndGoes()
			require.GreaterOrEqual(t, three.r.Stats().Rebalances, int64(3))
			three.leave()
			c.upTo(6, 130)
			require.Zero(t, c.cluster.Requests(int16(kmsg.JoinGroup)))
		})
	}
}

// What members leave to others is committed first: members that come and go cause no duplicates.
func TestConsumersCommitWhatTheyGiveUp(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 4, func(c *Config) { c.Consumer.Group.CommitInterval = time.Hour })
	c.writeAll(4, 0, 100)
	one := c.works(ReaderConfig{})
	c.total(400)
	two := c.works(ReaderConfig{})
	c.shared([]int{2, 2}, one, two)
	c.writeAll(4, 100, 150)
	c.total(600)
	one.leave()
	c.shared([]int{4}, two)
	c.writeAll(4, 150, 160)
	require.Zero(t, c.total(640), "messages read twice")
	two.leave()
	require.Equal(t, []int64{160, 160, 160, 160}, c.committed(0, 1, 2, 3))
}

func TestConsumersThatAreFencedJoinAgain(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  kmsg.Key
		code int16
		n    int
	}{
		{"a heartbeat of an epoch that ended", kmsg.ConsumerGroupHeartbeat, 110, 1},
		{"a heartbeat of a session that ended", kmsg.ConsumerGroupHeartbeat, 25, 1},
		{"a heartbeat at another coordinator", kmsg.ConsumerGroupHeartbeat, 16, 3},
		{"a heartbeat while the coordinator loads", kmsg.ConsumerGroupHeartbeat, 14, 3},
		{"a heartbeat while the coordinator is elected", kmsg.ConsumerGroupHeartbeat, 15, 3},
		{"a commit of an epoch that has been left behind", kmsg.OffsetCommit, 113, 1},
		{"a commit of a session that ended", kmsg.OffsetCommit, 25, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newConsumerCrew(t, broker.Options{}, 2, nil)
			c.writeAll(2, 0, 100)
			h := c.works(ReaderConfig{})
			c.shared([]int{2}, h)
			fault := c.cluster.Fail(broker.Failure{Key: int16(tc.key), Code: tc.code, Count: tc.n, TopLevel: tc.key == kmsg.ConsumerGroupHeartbeat})
			require.NoError(t, fault.Wait(c.ctx, 1))
			c.writeAll(2, 100, 200)
			c.total(400)
			c.shared([]int{2}, h)
			h.leave()
			require.Equal(t, []int64{200, 200}, c.committed(0, 1))
		})
	}
}

// A commit refused because the member has another epoch by now is made again under it, and the
// caller does not notice.
func TestACommitOfAnEpochLeftBehindIsMadeAgain(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 1, nil)
	c.writeAll(1, 0, 10)
	h := c.member(ReaderConfig{})
	h.read(0)
	m := h.read(1)
	full := make(chan int32, 100)
	c.cluster.Observe(int16(kmsg.ConsumerGroupHeartbeat), func(_ int32, req kmsg.Request) {
		if beat := req.(*kmsg.ConsumerGroupHeartbeatRequest); beat.MemberEpoch > 0 && beat.RebalanceTimeoutMillis > 0 {
			select {
			case full <- beat.MemberEpoch:
			default:
			}
		}
	})
	fault := c.cluster.Fail(broker.Failure{Key: int16(kmsg.OffsetCommit), Code: wire.ErrStaleMemberEpoch.Code, Count: 1})
	committed := make(chan error, 1)
	go func() { committed <- h.r.CommitMessages(c.ctx, m) }()
	require.NoError(t, fault.Wait(c.ctx, 1))
	c.eventually(func() bool { return len(full) > 0 }, func() string { return "it asks what its epoch is" })
	// Another topic's reader joins: the group's epoch, and with it this member's, is raised. A topic more
	// raises it as well, so that it comes no earlier: who has learnt its epoch does not ask.
	require.NoError(t, c.cluster.CreateTopic("other", 1, nil))
	other := c.member(ReaderConfig{Topics: []string{"other"}})
	c.shared([]int{1}, other)
	require.NoError(t, <-committed)
	require.Equal(t, []int64{2}, c.committed(0))
	require.Zero(t, h.r.Stats().StaleCommits)
}

func TestAKilledConsumersPartitionsGoToOthers(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 4, nil)
	c.outlivesAMember()
}

func TestCoordinatorsOfConsumersThatMoveOrDie(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{Nodes: 3}, 6, nil)
	c.outlivesItsCoordinators()
}

func TestStaticConsumersComeBackWithoutARebalance(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 2, nil)
	c.writeAll(2, 0, 10)
	one, two := c.works(ReaderConfig{GroupInstanceID: "one"}), c.works(ReaderConfig{GroupInstanceID: "two"})
	c.shared([]int{1, 1}, one, two)
	c.total(20)
	rounds, held := two.assignments(), one.holding()
	one.leave()
	one = c.works(ReaderConfig{GroupInstanceID: "one"})
	c.shared([]int{1, 1}, one, two)
	require.Equal(t, held, one.holding())
	c.writeAll(2, 10, 20)
	c.total(40)
	require.Equal(t, rounds, two.assignments(), "the other one did not notice")

	// A second member of the same name waits for the first to end, and gives up in the end.
	thief := c.member(ReaderConfig{GroupInstanceID: "two", SessionTimeout: 100 * time.Millisecond})
	_, err := thief.r.FetchMessage(c.ctx)
	require.ErrorIs(t, err, wire.ErrUnreleasedInstanceID)
	require.ErrorContains(t, err, `"two"`)
	one.leave()
	two.leave()
}

// What Config and ReaderConfig say arrives at the coordinator; commits and look-ups of offsets carry
// who the member is.
func TestWhatConsumersTellTheCoordinator(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 1, func(c *Config) {
		c.Consumer.Rack, c.Consumer.Group.RemoteAssignor, c.Consumer.Group.RebalanceTimeout = "r1", "range", 22*time.Second
	})
	beats := make(chan *kmsg.ConsumerGroupHeartbeatRequest, 10_000)
	c.cluster.Observe(int16(kmsg.ConsumerGroupHeartbeat), func(_ int32, req kmsg.Request) {
		beats <- req.(*kmsg.ConsumerGroupHeartbeatRequest)
	})
	commits, fetches := make(chan *kmsg.OffsetCommitRequest, 100), make(chan *kmsg.OffsetFetchRequest, 100)
	c.cluster.Observe(int16(kmsg.OffsetCommit), func(_ int32, req kmsg.Request) { commits <- req.(*kmsg.OffsetCommitRequest) })
	c.cluster.Observe(int16(kmsg.OffsetFetch), func(_ int32, req kmsg.Request) { fetches <- req.(*kmsg.OffsetFetchRequest) })
	c.writeAll(1, 0, 1)
	h := c.member(ReaderConfig{GroupInstanceID: "i1"})
	join := <-beats
	require.Equal(t, []string{"in"}, join.SubscribedTopicNames)
	require.Equal(t, "r1", *join.RackID)
	require.Equal(t, "range", *join.ServerAssignor)
	require.Equal(t, "i1", *join.InstanceID)
	require.EqualValues(t, 22_000, join.RebalanceTimeoutMillis)
	require.Zero(t, join.MemberEpoch)
	require.Len(t, join.MemberID, 32)

	require.NoError(t, h.r.CommitMessages(c.ctx, h.read(0)))
	asked, commit := <-fetches, <-commits
	require.Equal(t, join.MemberID, *asked.Groups[0].MemberID)
	require.Positive(t, asked.Groups[0].MemberEpoch)
	for commit.Topics[0].Partitions[0].Offset == 0 {
		commit = <-commits // the one of where the partition starts
	}
	require.Equal(t, join.MemberID, commit.MemberID)
	require.Positive(t, commit.Generation)
	require.Equal(t, "i1", *commit.InstanceID)
	require.Equal(t, GroupMetadata{GroupID: c.name, MemberID: join.MemberID, GenerationID: commit.Generation, InstanceID: "i1"}, h.r.GroupMetadata())
	require.NoError(t, h.r.Close())
	var last *kmsg.ConsumerGroupHeartbeatRequest
	for len(beats) > 0 {
		last = <-beats
		require.Equal(t, join.MemberID, last.MemberID)
	}
	require.EqualValues(t, -2, last.MemberEpoch, "a static member comes back")

	c.name = "another"
	h = c.member(ReaderConfig{})
	c.shared([]int{1}, h)
	require.NoError(t, h.r.Close())
	for len(beats) > 0 {
		last = <-beats
	}
	require.EqualValues(t, -1, last.MemberEpoch)
}

// The coordinator has the pattern, and the topics found so far; where the pattern matches topics that
// are never meant, it has only these.
func TestConsumersSubscribeToAPattern(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 2, nil)
	first := make(chan *kmsg.ConsumerGroupHeartbeatRequest, 10_000)
	c.cluster.Observe(int16(kmsg.ConsumerGroupHeartbeat), func(_ int32, req kmsg.Request) {
		first <- req.(*kmsg.ConsumerGroupHeartbeatRequest)
	})
	c.writeAll(2, 0, 10)
	h := c.works(ReaderConfig{TopicPattern: "in|in-.*"})
	join := <-first
	require.Equal(t, "in|in-.*", *join.SubscribedTopicRegex)
	require.Equal(t, []string{"in"}, join.SubscribedTopicNames)
	c.total(20)
	require.NoError(t, c.cluster.CreateTopic("in-2", 3, nil))
	require.NoError(t, c.cluster.CreateTopic("out", 3, nil))
	c.shared([]int{5}, h)
	h.leave()
	for len(first) > 0 {
		<-first
	}
	h = c.member(ReaderConfig{TopicPattern: ".*"})
	join = <-first
	require.Nil(t, join.SubscribedTopicRegex)
	require.Equal(t, []string{"in", "in-2", "out"}, join.SubscribedTopicNames)
	c.shared([]int{8}, h)
	require.NoError(t, h.r.Close())
}

func TestPartitionsAddedToAConsumerGroup(t *testing.T) {
	c := newConsumerCrew(t, broker.Options{}, 1, nil)
	h := c.works(ReaderConfig{StartOffset: LastOffset})
	c.shared([]int{1}, h)
	c.client.setPartitions(t, c.ctx, "in", 3)
	require.NoError(t, c.client.RefreshMetadata(c.ctx, "in"))
	c.shared([]int{3}, h)
	c.writeAll(3, 0, 10)
	c.total(30)
	h.leave()
}

func TestProtocolAuto(t *testing.T) {
	auto := func(c *Config) { c.Consumer.Group.Protocol = "auto" }
	for _, tc := range []struct {
		what, version string
		consumer      bool
	}{
		{"a broker that offers the consumer protocol", "", true},
		{"a broker that does not", "3.6", false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			c := newCrew(t, broker.Options{Version: tc.version}, 2, auto)
			c.writeAll(2, 0, 10)
			one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
			c.shared([]int{1, 1}, one, two)
			c.total(20)
			one.leave()
			two.leave()
			require.Equal(t, tc.consumer, c.cluster.Requests(int16(kmsg.ConsumerGroupHeartbeat)) > 0)
			require.Equal(t, !tc.consumer, c.cluster.Requests(int16(kmsg.JoinGroup)) > 0)
		})
	}
	t.Run("a group whose members use the classic protocol", func(t *testing.T) {
		c := newCrew(t, broker.Options{}, 2, auto)
		c.writeAll(2, 0, 10)
		classic := c.works(ReaderConfig{GroupProtocol: "classic"})
		c.shared([]int{2}, classic)
		h := c.works(ReaderConfig{})
		c.shared([]int{1, 1}, classic, h)
		require.Positive(t, c.cluster.Requests(int16(kmsg.ConsumerGroupHeartbeat)))
		c.total(20)
		h.leave()
		classic.leave()
	})
	t.Run("the coordinator cannot be asked at first", func(t *testing.T) {
		c := newCrew(t, broker.Options{}, 2, auto)
		fault := c.cluster.Fail(broker.Failure{Key: int16(kmsg.FindCoordinator), Code: 15, Count: 5})
		h := c.works(ReaderConfig{})
		c.shared([]int{2}, h)
		require.Positive(t, fault.Hits())
		require.Positive(t, c.cluster.Requests(int16(kmsg.ConsumerGroupHeartbeat)))
		h.leave()
	})
}

func TestWhatEndsAConsumersMembership(t *testing.T) {
	for _, tc := range []struct {
		what string
		o    broker.Options
		code int16
		cfg  ReaderConfig
		want string
	}{
		{what: "a broker without the protocol", o: broker.Options{Version: "3.6"}, want: "does not know ConsumerGroupHeartbeat requests"},
		{what: "no right to the group", code: 30, want: "READ on the group is needed"},
		{what: "a full group", code: 81, want: "group.max.size"},
		{what: "an assignor that is not there", code: 112, want: "group.consumer.assignors"},
		{what: "a pattern that the coordinator cannot read", code: 128, cfg: ReaderConfig{TopicPattern: "in.?"}, want: `("in.?")`},
		{what: "a group of the other kind", code: 69, want: "set consumer.group.protocol=classic"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			c := newConsumerCrew(t, tc.o, 1, nil)
			if tc.code != 0 {
				c.cluster.Fail(broker.Failure{Key: int16(kmsg.ConsumerGroupHeartbeat), Code: tc.code, Count: -1, TopLevel: true})
			}
			h := c.member(tc.cfg)
			_, err := h.r.FetchMessage(c.ctx)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, `group "crew"`)
			require.NoError(t, h.r.Close())
		})
	}
}
