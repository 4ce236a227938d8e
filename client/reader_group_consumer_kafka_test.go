//go:build kafka

package client

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

func realConsumerCrew(t *testing.T, cluster *kafkatest.Cluster, partitions int32) *crew {
	return realCrew(t, cluster, partitions, func(c *Config) { c.Consumer.Group.Protocol = "auto" })
}

func TestRealConsumerGroup(t *testing.T) {
	t.Parallel()
	c := realConsumerCrew(t, kafkatest.Shared(t, 1), 6)
	c.writeAll(6, 0, 50)
	one := c.works(ReaderConfig{})
	c.shared([]int{6}, one)
	require.True(t, one.r.group.usesConsumer(), "Kafka 4 offers it")
	two, three := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{2, 2, 2}, one, two, three)
	c.writeAll(6, 50, 100)
	c.total(600)
	two.leave()
	c.shared([]int{3, 3}, one, three)
	c.writeAll(6, 100, 150)
	c.total(900)
	one.leave()
	c.shared([]int{6}, three)
	c.writeAll(6, 150, 200)
	c.total(1200)
	three.leave()
	c.upTo(6, 200)
}

func TestRealConsumerIsKilled(t *testing.T) {
	t.Parallel()
	c := realConsumerCrew(t, kafkatest.Shared(t, 1), 4)
	// Kafka ends a session after its own setting; a group may have one of its own (not below the least).
	require.NoError(t, c.setGroupConfig("consumer.session.timeout.ms", "45000"))
	one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{2, 2}, one, two)
	c.writeAll(4, 0, 50)
	c.total(200)
	one.kill()
	c.writeAll(4, 50, 100)
	c.shared([]int{4}, two)
	c.total(400)
	two.leave()
	c.upTo(4, 100)
}

// Three nodes, with replicas on all: the coordinator is killed while members come and go; nothing is
// lost, and what is committed is what was read.
func TestRealConsumerGroupOnThreeNodes(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Exclusive(t, 3)
	c := realConsumerCrew(t, cluster, 6)
	one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{3, 3}, one, two)
	require.True(t, one.r.group.usesConsumer())
	c.writeAll(6, 0, 50)
	c.total(300)
	b, err := c.client.Coordinator(c.ctx, c.name)
	require.NoError(t, err)
	node := fmt.Sprint(b.ID())
	t.Cleanup(func() { _, _ = cluster.TryScript("start", node) })
	cluster.Script(t, "kill9", node)
	three := c.works(ReaderConfig{})
	c.shared([]int{2, 2, 2}, one, two, three)
	c.writeAll(6, 50, 100)
	c.total(600)
	two.leave()
	c.shared([]int{3, 3}, one, three)
	one.leave()
	three.leave()
	c.upTo(6, 100)
}

// setGroupConfig sets a configuration of the group's own (KIP-848).
func (c *crew) setGroupConfig(key, value string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = 32, c.name // a group
	one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	one.Name, one.Value = key, &value
	r.Configs = append(r.Configs, one)
	req.Resources = append(req.Resources, r)
	return c.client.askController(c.ctx, req, func(resp kmsg.Response) error {
		a := resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
		return wire.ErrorWith(a.ErrorCode, a.ErrorMessage)
	})
}

func TestRealConsumerGroupByPattern(t *testing.T) {
	t.Parallel()
	c := realConsumerCrew(t, kafkatest.Shared(t, 1), 2)
	h := c.works(ReaderConfig{TopicPattern: c.topic + "(-more)?"})
	c.shared([]int{2}, h)
	more := c.topic + "-more"
	require.NoError(t, c.client.CreateTopics(c.ctx, TopicSpec{Name: more, Partitions: 2, ReplicationFactor: 1, Config: lasting(nil)}))
	c.writeTo(more, 1, values(0, 10))
	c.shared([]int{4}, h)
	c.total(10)
	require.NoError(t, c.client.DeleteTopics(c.ctx, more))
	c.shared([]int{2}, h)
	c.writeAll(2, 0, 10)
	c.total(30)
	h.leave()
}

func TestRealStaticConsumers(t *testing.T) {
	t.Parallel()
	c := realConsumerCrew(t, kafkatest.Shared(t, 1), 2)
	one, two := c.works(ReaderConfig{GroupInstanceID: "one"}), c.works(ReaderConfig{GroupInstanceID: "two"})
	c.shared([]int{1, 1}, one, two)
	c.writeAll(2, 0, 10)
	c.total(20)
	rounds, held := two.assignments(), one.holding()
	one.leave()
	one = c.works(ReaderConfig{GroupInstanceID: "one"})
	c.shared([]int{1, 1}, one, two)
	require.Equal(t, held, one.holding())
	c.writeAll(2, 10, 20)
	c.total(40)
	require.Equal(t, rounds, two.assignments(), "the other one did not notice")
	thief := c.member(ReaderConfig{GroupInstanceID: "two", SessionTimeout: time.Second})
	_, err := thief.r.FetchMessage(c.ctx)
	require.ErrorIs(t, err, wire.ErrUnreleasedInstanceID)
	one.leave()
	two.leave()
}

// A group of classic members is joined by one of the other protocol: Kafka takes both in one group.
func TestRealGroupOfBothProtocols(t *testing.T) {
	t.Parallel()
	c := realConsumerCrew(t, kafkatest.Shared(t, 1), 4)
	classic := c.works(ReaderConfig{GroupProtocol: "classic"})
	c.shared([]int{4}, classic)
	consumer := c.works(ReaderConfig{})
	c.shared([]int{2, 2}, classic, consumer)
	require.True(t, consumer.r.group.usesConsumer())
	c.writeAll(4, 0, 50)
	c.total(200)
	classic.leave()
	c.shared([]int{4}, consumer)
	c.writeAll(4, 50, 100)
	c.total(400)
	consumer.leave()
	c.upTo(4, 100)
}

func TestRealConsumerGroupWhoseCoordinatorRestarts(t *testing.T) {
	cluster := kafkatest.Exclusive(t, 1)
	c := realConsumerCrew(t, cluster, 4)
	c.outlivesRestarts(cluster)
}

func TestRealConsumerGroupSharedWithJava(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Shared(t, 1)
	c := realConsumerCrew(t, cluster, 4)
	c.sharesWith(4, func() *other {
		cmd := exec.CommandContext(context.Background(), os.Getenv("KBENCH_TEST_KAFKA_SCRIPT"), "tool", "ConsoleConsumer",
			"--bootstrap-server", c.addrs[0], "--topic", c.topic, "--group", c.name,
			"--consumer-property", "group.protocol=consumer", "--consumer-property", "auto.commit.interval.ms=100",
			"--property", "print.partition=true")
		cmd.Env = append(os.Environ(), "KAFKA_DIR="+cluster.Dir, "KAFKA_HEAP=-Xms64m -Xmx128m")
		return c.process(cmd, func(line string) (string, string, bool) {
			partition, value, ok := strings.Cut(strings.TrimPrefix(line, "Partition:"), "\t")
			return partition, value, ok
		})
	})
}
