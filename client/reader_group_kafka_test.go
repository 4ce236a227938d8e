//go:build kafka

package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// realCrew is a group on a real cluster, on a topic of its own.
func realCrew(t *testing.T, cluster *kafkatest.Cluster, partitions int32, change func(*Config)) *crew {
	b := newRealBed(t, cluster, func(c *Config) {
		c.Consumer.MaxWait = 100 * time.Millisecond
		c.Consumer.Group.HeartbeatInterval, c.Consumer.Group.SessionTimeout = 100*time.Millisecond, 6*time.Second
		c.Consumer.Group.RebalanceTimeout, c.Consumer.Group.TopicInterval = 20*time.Second, 500*time.Millisecond
		if change != nil {
			change(c)
		}
	})
	bed := &readerBed{t: t, client: b.c, ctx: b.ctx}
	name := b.topic(t, partitions, nil)
	return &crew{readerBed: bed, name: name + "-crew", addrs: cluster.Bootstrap, topic: name, seen: map[string]int{}}
}

func TestRealGroups(t *testing.T) {
	t.Parallel()
	for _, release := range kafkatest.Releases(t) {
		balancers := []string{"range", "cooperative-sticky"}
		if release.Name == "4.4" {
			balancers = append(balancers, "roundrobin", "sticky")
		}
		for _, balancer := range balancers {
			t.Run(release.Name+" "+balancer, func(t *testing.T) {
				t.Parallel()
				c := realCrew(t, release.Cluster, 6, func(c *Config) { c.Consumer.Group.Balancers = Balancers{balancer} })
				c.writeAll(6, 0, 50)
				one := c.works(ReaderConfig{})
				c.shared([]int{6}, one)
				two, three := c.works(ReaderConfig{}), c.works(ReaderConfig{})
				c.shared([]int{2, 2, 2}, one, two, three)
				c.writeAll(6, 50, 100)
				c.total(600)
				two.leave()
				c.shared([]int{3, 3}, one, three)
				c.writeAll(6, 100, 150)
				c.total(900)
				three.kill()
				c.writeAll(6, 150, 200)
				c.shared([]int{6}, one)
				c.total(1200)
				one.leave()
				c.upTo(6, 200)
			})
		}
	}
}

func TestRealGroupOfStaticMembers(t *testing.T) {
	t.Parallel()
	for _, release := range kafkatest.Releases(t) {
		t.Run(release.Name, func(t *testing.T) {
			t.Parallel()
			c := realCrew(t, release.Cluster, 2, nil)
			one, two := c.works(ReaderConfig{GroupInstanceID: "one"}), c.works(ReaderConfig{GroupInstanceID: "two"})
			c.shared([]int{1, 1}, one, two)
			c.writeAll(2, 0, 10)
			c.total(20)
			for _, h := range []*hand{one, two} {
				c.eventually(func() bool { return h.r.Stats().LastRebalance > 0 }, func() string { return "settled" })
			}
			rounds, held := two.assignments(), one.holding()
			one.leave()
			one = c.works(ReaderConfig{GroupInstanceID: "one"})
			c.shared([]int{1, 1}, one, two)
			require.Equal(t, held, one.holding())
			c.writeAll(2, 10, 20)
			c.total(40)
			require.Equal(t, rounds, two.assignments(), "the other one did not notice")
			// The leader that comes back goes on watching for partitions (KIP-814).
			two.leave()
			two = c.works(ReaderConfig{GroupInstanceID: "two"})
			c.shared([]int{1, 1}, one, two)
			c.client.setPartitions(t, c.ctx, c.topic, 4)
			c.shared([]int{2, 2}, one, two)
			require.NoError(t, c.client.RefreshMetadata(c.ctx, c.topic))
			c.writeAll(4, 20, 30)
			c.total(80)
			thief := c.works(ReaderConfig{GroupInstanceID: "two"})
			<-two.done
			require.Len(t, c.bad, 1)
			require.Contains(t, c.bad[0], "FENCED_INSTANCE_ID")
			c.bad = nil
			c.shared([]int{2, 2}, one, thief)
			one.leave()
			thief.leave()
		})
	}
}

func TestRealGroupWhoseCoordinatorRestarts(t *testing.T) {
	cluster := kafkatest.Exclusive(t, 1)
	c := realCrew(t, cluster, 4, nil)
	c.outlivesRestarts(cluster)
}

// outlivesRestarts is the scenario of a coordinator that is stopped, and killed, and comes back.
func (c *crew) outlivesRestarts(cluster *kafkatest.Cluster) {
	one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{2, 2}, one, two)
	c.writeAll(4, 0, 50)
	c.total(200)
	for i, how := range []string{"stop", "kill9"} {
		cluster.Script(c.t, how, "1")
		c.eventually(func() bool { // a process that was killed may take a moment to be gone
			conn, err := net.Dial("tcp", c.addrs[0])
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		}, func() string { return "the node is down" })
		cluster.Script(c.t, "start", "1")
		c.writeAll(4, 50+i*50, 100+i*50)
		c.total(200 * (i + 2))
		c.shared([]int{2, 2}, one, two)
	}
	one.leave()
	c.shared([]int{4}, two)
	two.leave()
	c.upTo(4, 150)
}

func TestRealGroupByPattern(t *testing.T) {
	t.Parallel()
	c := realCrew(t, kafkatest.Shared(t, 1), 2, nil)
	h := c.works(ReaderConfig{TopicPattern: c.topic + "(-more)?", StartOffset: LastOffset})
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
	c.fine()
	h.leave()
}

// other is another client's process, which reads in the same group and says what it has read.
type other struct {
	*crew
	cmd  *exec.Cmd
	done chan struct{}
	said bytes.Buffer // of its errors
	n    int
}

// process starts one. take gives the value that a line of its output stands for, and the partition.
func (c *crew) process(cmd *exec.Cmd, take func(line string) (partition, value string, ok bool)) *other {
	o := &other{crew: c, cmd: cmd, done: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	cmd.Stderr = &o.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(c.t, cmd.Start())
	go func() {
		defer close(o.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if partition, value, ok := take(lines.Text()); ok {
				c.mu.Lock()
				c.seen[fmt.Sprintf("%s/%s/%s", c.topic, partition, value)]++
				o.n++
				c.mu.Unlock()
			}
		}
	}()
	c.t.Cleanup(o.end)
	return o
}

func (o *other) read() int {
	o.crew.mu.Lock()
	defer o.crew.mu.Unlock()
	return o.n
}

// end lets the process leave its group in good order.
func (o *other) end() {
	if o.cmd.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-o.cmd.Process.Pid, syscall.SIGTERM)
	<-o.done
	_ = o.cmd.Wait() // how a terminated process ends is its own business
}

// sharesWith lets a member and another client share partitions, first one, then both, then the
// other alone, and again both.
func (c *crew) sharesWith(partitions int, start func() *other) {
	one := c.works(ReaderConfig{})
	c.shared([]int{partitions}, one)
	c.writeAll(partitions, 0, 50)
	c.total(50 * partitions)
	guest := start()
	c.eventually(func() bool { return len(one.holding()) == partitions/2 }, func() string {
		return fmt.Sprintf("we hold %v; it said %s", one.holding(), guest.said.String())
	})
	c.writeAll(partitions, 50, 100)
	c.eventually(func() bool { return guest.read() >= 50*partitions/2 }, func() string {
		return fmt.Sprintf("it reads its share: %d so far, we hold %v; it said %s", guest.read(), one.holding(), guest.said.String())
	})
	c.total(100 * partitions)
	one.leave()
	c.writeAll(partitions, 100, 150)
	c.total(150 * partitions)
	one = c.works(ReaderConfig{})
	c.eventually(func() bool { return len(one.holding()) == partitions/2 }, func() string { return fmt.Sprint(one.holding()) })
	c.writeAll(partitions, 150, 200)
	c.total(200 * partitions)
	guest.end()
	c.shared([]int{partitions}, one)
	c.writeAll(partitions, 200, 210)
	c.total(210 * partitions)
	one.leave()
	c.upTo(partitions, 210)
}

func TestRealGroupSharedWithJava(t *testing.T) {
	t.Parallel()
	for _, release := range kafkatest.Releases(t) {
		for _, balancer := range map[string][]string{"4.4": {"cooperative-sticky"}, "3.9": {"range"}}[release.Name] {
			t.Run(release.Name+" "+balancer, func(t *testing.T) {
				t.Parallel()
				c := realCrew(t, release.Cluster, 4, func(c *Config) { c.Consumer.Group.Balancers = Balancers{balancer} })
				c.sharesWith(4, func() *other {
					cmd := exec.CommandContext(context.Background(), os.Getenv("KBENCH_TEST_KAFKA_SCRIPT"), "tool", "ConsoleConsumer",
						"--bootstrap-server", c.addrs[0], "--topic", c.topic, "--group", c.name,
						"--consumer-property", "auto.commit.interval.ms=100", "--consumer-property", "heartbeat.interval.ms=100",
						"--property", "print.partition=true")
					cmd.Env = append(os.Environ(), "KAFKA_DIR="+release.Dir, "KAFKA_HEAP=-Xms64m -Xmx128m")
					return c.process(cmd, func(line string) (string, string, bool) {
						partition, value, ok := strings.Cut(strings.TrimPrefix(line, "Partition:"), "\t")
						return partition, value, ok
					})
				})
			})
		}
	}
}

// TestRealGroupSharedWithOtherClients needs the program that PEERS names the folder of; see
// client/internal/bench. Without it there is nothing to share with.
func TestRealGroupSharedWithOtherClients(t *testing.T) {
	t.Parallel()
	peers := os.Getenv("PEERS")
	libs := []struct{ name, balancer string }{{"franz", "cooperative-sticky"}, {"franz", "range"}, {"sarama", "range"}, {"kafkago", "range"}}
	if peers == "" {
		libs = nil
	}
	for _, lib := range libs {
		t.Run(lib.name+" "+lib.balancer, func(t *testing.T) {
			t.Parallel()
			c := realCrew(t, kafkatest.Shared(t, 1), 4, func(c *Config) { c.Consumer.Group.Balancers = Balancers{lib.balancer} })
			c.sharesWith(4, func() *other {
				cmd := exec.CommandContext(context.Background(), filepath.Join(peers, "peer", "peer"), "-mode", "group", "-lib", lib.name,
					"-b", c.addrs[0], "-t", c.topic, "-group", c.name, "-balancer", lib.balancer)
				return c.process(cmd, func(line string) (string, string, bool) { return strings.Cut(line, "\t") })
			})
		})
	}
}

// TestRealCommitsOfATransactionAreWaitedFor: a member that takes a partition over waits for the
// offsets of a transaction that is being committed, instead of reading it all again (KIP-447).
func TestRealCommitsOfATransactionAreWaitedFor(t *testing.T) {
	t.Parallel()
	c := realCrew(t, kafkatest.Shared(t, 1), 1, nil)
	c.writeAll(1, 0, 10)
	one := c.member(ReaderConfig{})
	for i := range 10 {
		one.read(i)
	}
	cfg := c.client.Config()
	cfg.Producer.Idempotent, cfg.Producer.Transaction.ID = true, c.name
	p, err := NewAsyncProducer(c.addrs, &cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(c.ctx)) }()
	require.NoError(t, p.BeginTransaction(c.ctx))
	require.NoError(t, p.SendOffsetsToTransaction(c.ctx, []GroupOffset{{Topic: c.topic, Partition: 0, Offset: 7}}, one.r.GroupMetadata()))
	require.NoError(t, one.r.Close())
	two := c.member(ReaderConfig{})
	require.Never(t, func() bool { return len(two.holding()) > 0 }, time.Second, 50*time.Millisecond, "the offset is not known yet")
	require.NoError(t, p.CommitTransaction(c.ctx))
	two.read(7)
}
