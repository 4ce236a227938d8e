package kafka

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 3 * time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// load is a small load that ends after its messages: two producers, two consumers, six partitions.
func load(messages int64) workloads.Definition {
	d := workloads.Default()
	d.Name = "target test"
	d.Topics.Partitions = 6
	d.Producers.Count, d.Producers.Rate, d.Producers.Messages = 2, 1000, messages
	d.Consumers.Count = 2
	d.Payload.Size = 100
	d.Phases.WarmUp, d.Phases.Duration, d.Phases.Drain = 200*time.Millisecond, 0, time.Minute
	d.Validity.MaxHostCPUShare = 0 // other tests keep the machine busy
	return d
}

// bench is one run of a definition on a cluster.
type bench struct {
	d    workloads.Definition
	cfg  *client.Config
	acks string
}

func (b bench) target(bootstrap []string) (*Target, run.Spec) {
	clock := run.NewClock()
	if b.cfg == nil {
		b.cfg = client.NewConfig()
	}
	t := New(Options{Bootstrap: bootstrap, Config: *b.cfg, Definition: b.d, Clock: clock})
	return t, run.Spec{Definition: b.d, Target: t, Clock: clock, AckMeaning: b.acks}
}

func (b bench) execute(t *testing.T, bootstrap []string) *run.Outcome {
	_, spec := b.target(bootstrap)
	out, err := run.Execute(within(t), spec)
	require.NoError(t, err)
	return out
}

// requireWhole checks that every message was acknowledged and arrived once, in order and intact.
func requireWhole(t *testing.T, out *run.Outcome, messages int64) {
	requireWholeIn(t, out, messages, 1)
}

// requireWholeIn is requireWhole where several groups receive everything: once, or, as members that
// have to leave their group's partitions to others on a busy machine, at least once.
func requireWholeIn(t *testing.T, out *run.Outcome, messages, groups int64) {
	c := out.Run.Counts
	require.Equal(t, messages, c.Attempted, "attempted")
	require.Equal(t, messages, c.Acked, "acked; errors: %v", out.Run.Errors)
	require.Equal(t, []int64{0, 0, 0, 0, 0}, []int64{c.Failed, c.Unknown, c.Lost, c.Reordered, c.Corrupted})
	require.Len(t, out.Run.Consumption.Groups, int(groups))
	again := int64(0)
	for _, g := range out.Run.Consumption.Groups {
		if g.Name != "" { // members of a group
			again += g.Duplicated
		}
		require.Equal(t, messages+g.Duplicated, g.Received)
	}
	require.Equal(t, again, c.Duplicated, "duplicated")
	require.Equal(t, messages*groups+again, c.Received, "received")
	for _, s := range []string{results.SeriesResponse, results.SeriesService, results.SeriesDelay} {
		require.Equal(t, messages, out.Run.Series[s].Count, s)
		require.GreaterOrEqual(t, out.Run.Series[s].MinNs, int64(0), s)
	}
	require.GreaterOrEqual(t, out.Run.Series[results.SeriesE2E].Count, messages*groups)
	require.LessOrEqual(t, out.Run.Series[results.SeriesE2E].Count, messages*groups+again)
	require.GreaterOrEqual(t, out.Run.Series[results.SeriesE2E].MinNs, int64(0))
}

// requireReport checks what the target told about topics and requests.
func requireReport(t *testing.T, out *run.Outcome, replicas int) {
	require.Len(t, out.Run.Topics, 1)
	topic := out.Run.Topics[0]
	require.True(t, strings.HasPrefix(topic.Name, "kbench-target-test-"), topic.Name)
	require.EqualValues(t, 6, topic.Partitions)
	require.EqualValues(t, replicas, topic.ReplicationFactor)
	require.Len(t, topic.LeadersBefore, 6)
	require.Equal(t, topic.LeadersBefore, topic.LeadersAfter)
	require.Equal(t, []int{replicas, replicas, replicas, replicas, replicas, replicas}, topic.ISRAfter)
	require.Equal(t, topic.ISRAfter, topic.ISRBefore)
	require.NotEmpty(t, topic.Config["max.message.bytes"])
	b := out.Run.Batches
	require.Positive(t, b.Requests)
	require.GreaterOrEqual(t, b.Batches, b.Requests)
	require.GreaterOrEqual(t, b.MessagesPerRequest, b.MessagesPerBatch)
	require.GreaterOrEqual(t, b.MessagesPerBatch, 1.0)
	require.Greater(t, b.BytesPerBatch, 100.0)
}

// topicsOf lists a cluster's topics whose names begin with kbench.
func topicsOf(t *testing.T, bootstrap []string) map[string]bool {
	c, err := client.NewClient(bootstrap, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	all, err := c.Topics(within(t))
	require.NoError(t, err)
	out := map[string]bool{}
	for _, name := range all {
		if strings.HasPrefix(name, "kbench-target-test-") {
			out[name] = true
		}
	}
	return out
}

// added are the topics that are there and were not before.
func added(before, after map[string]bool) []string {
	maps.DeleteFunc(after, func(name string, _ bool) bool { return before[name] })
	var out []string
	for name := range after {
		out = append(out, name)
	}
	return out
}

func put(t *testing.T, bootstrap []string, topic string, n int) {
	p, err := client.NewSyncProducer(bootstrap, nil)
	require.NoError(t, err)
	msgs := make([]*client.ProducerMessage, n)
	for i := range msgs {
		msgs[i] = &client.ProducerMessage{Topic: topic, Value: []byte("from before the run")}
	}
	require.NoError(t, p.SendMessagesContext(within(t), msgs))
	require.NoError(t, p.Close(within(t)))
}
