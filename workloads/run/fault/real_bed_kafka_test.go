//go:build kafka

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

const (
	realPatience   = 15 * time.Minute
	realFaultEvery = 5 * time.Second
)

// realLength is how long messages are written: short by default.
func realLength() time.Duration {
	if os.Getenv("KBENCH_SOAK") == "1" {
		return 3 * time.Minute
	}
	return 20 * time.Second
}

// realBed is a real cluster of three nodes, the proxy in front of it, and an admin client that goes
// around it.
type realBed struct {
	*kafkatest.Cluster
	t      *testing.T
	ctx    context.Context
	proxy  *Proxy
	admin  *client.Client
	prefix string     // of the topics' names
	topics []string   // of the test
	rand   *rand.Rand // of the test's own goroutine
	// elections of leaders, asked for, by their outcome's error code.
	elections map[int16]int
}

func newRealBed(t *testing.T, name string) *realBed {
	b := &realBed{Cluster: kafkatest.Exclusive(t, 3), t: t, elections: map[int16]int{}, rand: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() { // for the tests that follow
		for n := 1; t.Failed() && n <= 3; n++ {
			_, _ = b.TryScript("start", strconv.Itoa(n))
		}
	})
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(t.Context(), realPatience)
	t.Cleanup(cancel)
	var err error
	b.admin, err = client.NewClientContext(b.ctx, b.Bootstrap, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.admin.Close() })
	b.proxy, err = New(b.ctx, b.Bootstrap, Options{Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.proxy.Close()) })
	b.prefix = fmt.Sprintf("kbench-test-%s-%d", name, time.Now().UnixNano())
	return b
}

// topic makes the next topic of the test, of which two replicas have what is acknowledged.
func (b *realBed) topic(partitions int32, config map[string]string) string {
	name := fmt.Sprintf("%s-%d", b.prefix, len(b.topics))
	if config == nil {
		config = map[string]string{}
	}
	config["min.insync.replicas"] = "2"
	require.NoError(b.t, b.admin.CreateTopics(b.ctx, client.TopicSpec{Name: name, Partitions: partitions, ReplicationFactor: 3, Config: config}))
	b.topics = append(b.topics, name)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b.t, b.admin.DeleteTopics(ctx, name))
	})
	return name
}

// ending is how a node is ended: by kill9 or stop.
type ending struct {
	how   string
	node  int
	after func() // once it is; may be nil
}

// disturb moves leaders and cuts connections every few seconds, and ends nodes in turn, until the
// time is over and all nodes are back.
func (b *realBed) disturb(movable []string, end func(turn int) ending) (dead []string) {
	stop, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- b.endNodes(stop, &dead, end) }() // ends when stop is closed and the node is back
	after := time.After(realLength())
	for step := 0; ; step++ {
		select {
		case <-time.After(realFaultEvery):
			b.moveLeaders(movable[step%len(movable)])
			b.proxy.Cut(AllNodes, End(step%2))
			continue
		case <-after:
			close(stop)
			require.NoError(b.t, <-over)
		case err := <-over:
			require.NoError(b.t, err)
		}
		return dead
	}
}

// endNodes ends nodes in turn, each when all are whole again.
func (b *realBed) endNodes(stop <-chan struct{}, dead *[]string, end func(turn int) ending) error {
	for i := 0; ; i++ {
		e := end(i)
		node, with := strconv.Itoa(e.node), e.how
		_, err := b.TryScript(with, node)
		if e.after != nil {
			e.after()
		}
		if err != nil {
			return err
		}
		*dead = append(*dead, with+" "+node)
		select {
		case <-time.After(2 * time.Second): // without it
		case <-b.ctx.Done():
		}
		if _, err := b.TryScript("start", node); err != nil {
			return err
		}
		for !b.whole() {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-b.ctx.Done():
				return fmt.Errorf("after %s of node %s the replicas are not in sync: %w", with, node, b.ctx.Err())
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// moveLeaders makes another replica the preferred leader of every partition of a topic, and the
// leader. What cannot be done while a node is down is left.
func (b *realBed) moveLeaders(topic string) {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	d, err := b.admin.DescribeTopic(ctx, topic)
	if err != nil {
		return
	}
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	assign.TimeoutMillis = 2000
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.TimeoutMillis = 2000
	at, et := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewElectLeadersRequestTopic()
	at.Topic, et.Topic = topic, topic
	for i, replicas := range d.Replicas {
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = int32(i), slices.Concat(replicas[1:], replicas[:1])
		at.Partitions = append(at.Partitions, p)
		et.Partitions = append(et.Partitions, int32(i))
	}
	assign.Topics, elect.Topics = append(assign.Topics, at), append(elect.Topics, et)
	for _, c := range b.admin.Brokers() { // any that is up passes it on to the controller
		if b.elect(ctx, c, assign, elect) {
			return
		}
	}
}

// elect asks one broker, which may be starting: it is not waited for.
func (b *realBed) elect(ctx context.Context, c *client.Broker, assign, elect kmsg.Request) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := c.Request(ctx, assign); err != nil {
		return false
	}
	resp, err := c.Request(ctx, elect)
	if err != nil {
		return false
	}
	for _, t := range resp.(*kmsg.ElectLeadersResponse).Topics {
		for _, p := range t.Partitions {
			b.elections[p.ErrorCode]++
		}
	}
	return true
}

// whole says whether every replica of every topic is in sync and every partition has a leader.
func (b *realBed) whole() bool {
	for _, topic := range b.topics {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		d, err := b.admin.DescribeTopic(ctx, topic)
		cancel()
		if err != nil {
			return false
		}
		for i := range d.ISR {
			if len(d.ISR[i]) != 3 || d.Leaders[i] < 0 {
				return false
			}
		}
	}
	return true
}

func (b *realBed) awaitWhole() {
	require.Eventually(b.t, b.whole, realPatience, 200*time.Millisecond, "every replica in sync")
}

func (b *realBed) someNode() int32 {
	nodes := b.proxy.Nodes()
	require.Len(b.t, nodes, 3)
	return nodes[b.rand.IntN(len(nodes))]
}

func (b *realBed) suffer(node int32, f Fault, d time.Duration) {
	require.NoError(b.t, b.proxy.For(b.ctx, node, f, d))
	b.pause(time.Second)
}

// pause lets the load run for a while; it synchronises with nothing.
func (b *realBed) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		b.t.Fatal(b.ctx.Err())
	}
}
