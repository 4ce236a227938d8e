package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/broker"
	"github.com/kbench/kbench/workloads/run"
)

// hasty is a broker whose groups rebalance and lose members in no time.
func hasty(t *testing.T, nodes int) *broker.Cluster {
	c, err := broker.Start(broker.Options{Nodes: nodes, Config: map[string]string{
		"group.min.session.timeout.ms": "100", "group.consumer.heartbeat.interval.ms": "20", "group.consumer.session.timeout.ms": "1000",
	}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// groupLoad is load by members of groups that notice things quickly.
func groupLoad(messages int64) bench {
	b := bench{d: load(messages), cfg: client.NewConfig()}
	b.d.Consumers.Mode = "group"
	g := &b.cfg.Consumer.Group
	g.HeartbeatInterval, g.SessionTimeout, g.RebalanceTimeout = 20*time.Millisecond, 600*time.Millisecond, 10*time.Second
	b.cfg.Admin.Retry.Backoff = 5 * time.Millisecond
	return b
}

// commitsOf is what a group has committed of a topic.
func commitsOf(t *testing.T, c *broker.Cluster, group, topic string) []int64 {
	cl, err := client.NewClient(c.Bootstrap(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	offsets, err := cl.CommittedOffsets(within(t), group, topic, 0, 1, 2, 3, 4, 5)
	require.NoError(t, err)
	return offsets
}

// Every form in every mode receives everything once.
func TestEveryFormInEveryMode(t *testing.T) {
	for _, mode := range []string{"partition", "group"} {
		for _, form := range []string{"batch", "message"} {
			for _, commit := range []string{"interval", "batch", "none"} {
				if mode == "partition" && commit != "interval" {
					continue
				}
				t.Run(mode+" "+form+" "+commit, func(t *testing.T) {
					t.Parallel()
					b := groupLoad(500)
					b.d.Consumers.Mode, b.d.Consumers.Form, b.d.Consumers.Commit = mode, form, commit
					out := b.execute(t, hasty(t, 1).Bootstrap())
					requireWhole(t, out, 500)
					require.Positive(t, out.Run.Series[results.SeriesFetch].Count)
					g := out.Run.Consumption.Groups[0]
					require.Zero(t, g.Rebalances, "joining is not in the measured phase: %v", out.Run.Events)
					require.Equal(t, mode == "group", g.Name != "")
					require.Equal(t, commit == "batch" && mode == "group", g.Commits > 8, "%d commits", g.Commits)
				})
			}
		}
	}
}

// Groups do not share anything: each receives everything, over several topics.
func TestGroupsReceiveEverythingEach(t *testing.T) {
	b := groupLoad(600)
	b.d.Topics.Count, b.d.Producers.Count, b.d.Topics.Partitions, b.d.Consumers.Groups = 3, 3, 2, 2
	c := hasty(t, 2)
	out := b.execute(t, c.Bootstrap())
	requireWholeIn(t, out, 600, 2)
	require.NotEqual(t, out.Run.Consumption.Groups[0].Name, out.Run.Consumption.Groups[1].Name)
	require.Len(t, out.Lags.Columns, 12)
	require.Equal(t, out.Run.Consumption.Groups[1].Name, out.Lags.Columns[11].Group)
	for _, g := range out.Run.Consumption.Groups {
		for _, topic := range out.Run.Topics {
			require.Equal(t, []int64{-1, -1, -1, -1, -1, -1}, commitsOf(t, c, g.Name, topic.Name), "the groups are deleted after the run")
		}
	}
}

// Members that join, leave and die: nothing is lost, and every rebalance has its place on the time
// axis. A message may come twice after a death, no more than were not committed.
func TestMembersComeAndGo(t *testing.T) {
	for _, balancer := range []string{"cooperative-sticky", "range"} {
		t.Run(balancer, func(t *testing.T) {
			t.Parallel()
			b := groupLoad(0)
			b.cfg.Consumer.Group.Balancers = client.Balancers{balancer}
			b.d.Producers.Messages, b.d.Phases.Duration, b.d.Phases.Interval = 0, 5*time.Second, 250*time.Millisecond
			b.d.Consumers.Changes = []workloads.Change{
				{At: time.Second, Kind: workloads.Add, Count: 1}, {At: 2 * time.Second, Kind: workloads.Remove, Count: 1}, {At: 3 * time.Second, Kind: workloads.Kill, Count: 1}}
			out := b.execute(t, hasty(t, 1).Bootstrap())
			c := out.Run.Counts
			require.EqualValues(t, 5000, c.Acked)
			require.Zero(t, c.Lost+c.NotReceived+c.Corrupted+c.Reordered)
			require.Equal(t, c.Acked+c.Duplicated, c.Received)
			require.LessOrEqual(t, c.Duplicated, int64(2500), "of a second's worth, unless the machine is too busy to commit")
			var kinds []string
			for _, e := range out.Run.Events {
				if e.Kind == "consumers" {
					kinds = append(kinds, e.Text)
				}
			}
			require.Equal(t, []string{"a consumer joined", "a consumer left", "a consumer was killed"}, kinds)
			g := out.Run.Consumption.Groups[0]
			require.Positive(t, g.Rebalances, "%v", out.Run.Events) // on a busy machine they run into one another
			require.EqualValues(t, g.Rebalances, len(eventsOf(out, "rebalance")))
			require.GreaterOrEqual(t, g.RebalanceMaxNs, int64(400*time.Millisecond), "nobody reads a dead member's partitions until its session has run out")
			require.Less(t, g.RebalanceMaxNs, int64(5*time.Second), "it ended before the run did")
			require.Positive(t, out.Run.Series[results.SeriesRebalance].Count)
			require.Positive(t, out.Run.Consumption.Lag.MaxMessages, "the dead member's partitions fall behind, though nobody reads them")
			require.LessOrEqual(t, out.Run.Consumption.Lag.FinalMessages, out.Run.Consumption.Lag.MaxMessages) // equal when the last look is the worst
		})
	}
}

// With the protocol in which the coordinator assigns (KIP-848), too: a workload's setting like others.
func TestMembersOfTheConsumerProtocolComeAndGo(t *testing.T) {
	b := groupLoad(0)
	b.cfg.Consumer.Group.Protocol = "consumer"
	b.d.Producers.Messages, b.d.Phases.Duration = 0, 3*time.Second
	b.d.Consumers.Changes = []workloads.Change{
		{At: time.Second, Kind: workloads.Add, Count: 1}, {At: 2 * time.Second, Kind: workloads.Remove, Count: 1}}
	broker := hasty(t, 1)
	out := b.execute(t, broker.Bootstrap())
	c := out.Run.Counts
	require.EqualValues(t, 3000, c.Acked)
	require.Zero(t, c.Lost+c.NotReceived+c.Corrupted+c.Reordered+c.Duplicated)
	require.Equal(t, c.Acked, c.Received)
	require.Positive(t, out.Run.Consumption.Groups[0].Rebalances, "%v", out.Run.Events)
	require.Positive(t, broker.Requests(68), "ConsumerGroupHeartbeat")
	require.Zero(t, broker.Requests(11), "JoinGroup")
}

func eventsOf(out *run.Outcome, kind string) (list []results.Event) {
	for _, e := range out.Run.Events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// Without commits whoever takes a partition over begins where the group began.
func TestNothingIsCommitted(t *testing.T) {
	b := groupLoad(0)
	b.d.Consumers.Commit, b.d.Producers.Messages, b.d.Phases.Duration = "none", 0, 2*time.Second
	b.d.Consumers.Changes = []workloads.Change{{At: time.Second, Kind: workloads.Remove, Count: 1}}
	out := b.execute(t, hasty(t, 1).Bootstrap())
	c := out.Run.Counts
	require.Zero(t, c.Lost)
	require.Greater(t, c.Duplicated, int64(300), "what the one that left had received")
}

// Members begin on a backlog: of a topic made for the run, and of one that was there before, of
// whose older messages nothing is read.
func TestGroupsThatBeginOnABacklog(t *testing.T) {
	for _, topic := range []string{"", "mine"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			c := hasty(t, 1)
			require.NoError(t, c.CreateTopic("mine", 6, nil))
			put(t, c.Bootstrap(), "mine", 50)
			b := groupLoad(3000)
			b.d.Topics.Name, b.d.Consumers.StartAfter, b.d.Consumers.Groups = topic, 400*time.Millisecond, 2
			out := b.execute(t, c.Bootstrap())
			requireWholeIn(t, out, 3000, 2)
			u := out.Run.Consumption.CatchUp
			require.True(t, u.Reached)
			require.GreaterOrEqual(t, u.BacklogMessages, int64(900), "of the warm-up and of 400 ms, in two groups, and of their joining")
			require.LessOrEqual(t, u.BacklogMessages, int64(2*3200), "no more than was sent")
			require.NotContains(t, fmt.Sprint(out.Run.Verdict.Warnings), "arrived", "none of what was there before")
		})
	}
}

// "earliest" is the beginning of the log for a group as well, and what it received is committed.
func TestGroupReadsFromTheBeginning(t *testing.T) {
	c := hasty(t, 1)
	require.NoError(t, c.CreateTopic("mine", 6, nil))
	put(t, c.Bootstrap(), "mine", 50)
	b := groupLoad(1)
	b.d.Topics.Name, b.d.Consumers.From, b.d.Consumers.Commit = "mine", "earliest", "batch"
	target, _ := b.target(c.Bootstrap())
	require.NoError(t, target.Prepare(within(t)))
	in := &arrivals{places: map[[2]int64]int{}, want: 50, enough: make(chan struct{})}
	consumer, err := target.OpenConsumer(within(t), run.Member{}, in)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(within(t))
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }() // ends with ctx; awaited below
	<-in.enough
	require.Eventually(t, func() bool { return behind(target) == 0 }, patience, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, consumer.Close(within(t)))
	var sum int64
	for _, offset := range commitsOf(t, c, target.groups[0].name, "mine") {
		sum += max(0, offset)
	}
	require.EqualValues(t, 50, sum)
	require.NoError(t, target.Finish(within(t)))
	require.Equal(t, []int64{-1, -1, -1, -1, -1, -1}, commitsOf(t, c, target.groups[0].name, "mine"))
}

// A group that does not settle ends the run before any load, and says how far it came.
func TestGroupThatDoesNotSettle(t *testing.T) {
	c := hasty(t, 1)
	b := groupLoad(100)
	target, _ := b.target(c.Bootstrap())
	require.NoError(t, target.Prepare(within(t)))
	ctx, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	err := target.Settle(ctx)
	require.ErrorContains(t, err, `0 of 6 partitions of group "kbench-target-test-`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, target.Finish(within(t)))
}

// A member that the coordinator refuses ends the wait, with the reason.
func TestGroupThatIsRefused(t *testing.T) {
	c, err := broker.Start(broker.Options{}) // sessions of six seconds at least
	require.NoError(t, err)
	t.Cleanup(c.Close)
	target, spec := groupLoad(100).target(c.Bootstrap())
	spec.Target = target
	_, err = run.Execute(within(t), spec)
	require.ErrorContains(t, err, "waiting for the consumers: ")
	require.ErrorContains(t, err, "INVALID_SESSION_TIMEOUT")
	require.ErrorContains(t, err, "group.min.session.timeout.ms")
}

// A killed member goes without a word: the group learns of it when its session has run out.
func TestKilledMembersSayNothing(t *testing.T) {
	c := hasty(t, 1)
	b := groupLoad(100)
	b.d.Consumers.Count = 1
	target, _ := b.target(c.Bootstrap())
	require.NoError(t, target.Prepare(within(t)))
	in := &arrivals{places: map[[2]int64]int{}, enough: make(chan struct{})}
	consumer, err := target.OpenConsumer(within(t), run.Member{}, in)
	require.NoError(t, err)
	require.NoError(t, target.Settle(within(t)))
	before := c.Requests(13) // LeaveGroup
	consumer.(run.Killer).Kill()
	began := time.Now()
	_ = consumer.Close(within(t))
	require.Less(t, time.Since(began), 2*time.Second, "nothing is waited for")
	require.Equal(t, before, c.Requests(13))
	require.NoError(t, target.Finish(within(t)), "a group with a dead member in it goes by itself")
}

func TestDeletingGroups(t *testing.T) {
	c := hasty(t, 2)
	require.NoError(t, c.CreateTopic("in", 1, nil))
	cl, err := client.NewClient(c.Bootstrap(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	require.NoError(t, cl.DeleteGroups(within(t), "nobody", "knows"), "one that does not exist is no error")
	assigned := make(chan struct{})
	r, err := cl.NewReader(client.ReaderConfig{GroupID: "there", Topics: []string{"in"}, OnAssigned: func(int32, []client.TopicPartition) { close(assigned) }})
	require.NoError(t, err)
	<-assigned
	var kafka *client.KafkaError
	require.ErrorAs(t, cl.DeleteGroups(within(t), "there"), &kafka)
	require.Equal(t, "NON_EMPTY_GROUP", kafka.Name)
	require.NoError(t, r.Close())
	require.NoError(t, cl.DeleteGroups(within(t), "there"))
	offsets, err := cl.CommittedOffsets(within(t), "there", "in", 0)
	require.NoError(t, err)
	require.Equal(t, []int64{-1}, offsets, "what it had committed is gone")
}
