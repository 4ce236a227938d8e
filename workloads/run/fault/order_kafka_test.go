//go:build kafka

package fault

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Leaders are moved and connections cut every five seconds, and one node after the other is
// killed, or stopped in good order, and started again once every replica is in sync.
func TestKafkaOrderAndLossWhileNodesDie(t *testing.T) {
	b := newOrderBed(t)
	var dead []string
	b.during(func() {
		dead = b.disturb(b.topics, func(turn int) ending {
			return ending{how: []string{"kill9", "stop"}[turn%2], node: turn%3 + 1}
		})
	})
	t.Logf("nodes: %s", strings.Join(dead, ", "))
	require.NotEmpty(t, dead)
	b.judge()
}

// Everything that the network may do, one after the other, leaders moving all the while.
func TestKafkaOrderAndLossOnABadNetwork(t *testing.T) {
	b := newOrderBed(t)
	var done []string
	b.during(func() {
		for began, step := time.Now(), 0; time.Since(began) < realLength() || step < len(networkFaults); step++ {
			b.moveLeaders(b.writers[step%len(b.writers)].topic)
			f := networkFaults[step%len(networkFaults)]
			done = append(done, f.name)
			f.act(b)
		}
	})
	t.Logf("faults: %s", strings.Join(done, ", "))
	s := b.proxy.Stats(AllNodes)
	require.Positive(t, s.Cut)
	require.Positive(t, s.Truncated)
	b.judge()
}

// networkFaults each take a few seconds.
var networkFaults = []struct {
	name string
	act  func(*orderBed)
}{
	{"cut", func(b *orderBed) {
		b.proxy.Cut(AllNodes, Reset)
		b.pause(time.Second)
		b.proxy.Cut(b.someNode(), Finish)
		b.pause(time.Second)
	}},
	{"truncate", func(b *orderBed) {
		plan := b.proxy.Truncate(Truncation{Node: AllNodes, Keys: []int16{keyProduce}, Answers: 20, Bytes: Random, How: End(b.rand.IntN(2))})
		b.pause(3 * time.Second)
		plan.Cancel()
	}},
	{"delay", func(b *orderBed) {
		p := Path{Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond}
		b.suffer(b.someNode(), Fault{ToBroker: p, ToClient: p}, 3*time.Second)
	}},
	{"stall", func(b *orderBed) { b.suffer(b.someNode(), Stalled(), 2*time.Second) }},
	{"lose answers", func(b *orderBed) { b.suffer(b.someNode(), Fault{ToClient: Path{Vanish: true}}, time.Second) }},
	{"narrow", func(b *orderBed) {
		b.suffer(AllNodes, Fault{ToBroker: Path{BytesPerSecond: 60_000}}, 3*time.Second)
	}},
	{"stall beyond the timeout", func(b *orderBed) {
		b.suffer(b.someNode(), Fault{ToBroker: Path{Stall: true}}, 5*time.Second)
	}},
	{"refuse", func(b *orderBed) {
		n := b.someNode()
		require.NoError(b.t, b.proxy.Set(n, Fault{Refuse: true}))
		b.proxy.Cut(n, Reset)
		b.suffer(n, Fault{Refuse: true}, 2*time.Second)
	}},
}

// judge reads all logs back, by both clients, and holds the producers to their promises.
func (b *orderBed) judge() {
	t := b.t
	t.Logf("leaders moved on purpose: %d; elections by error code: %v; proxy: %+v", b.elections[0], b.elections, b.proxy.Stats(AllNodes))
	require.Positive(t, b.elections[0])
	require.NoError(t, b.proxy.Err())
	require.Zero(t, b.proxy.Stats(AllNodes).Untouched)
	b.awaitWhole()
	other := b.readByKafka(b.readByUs())
	for i, w := range b.writers {
		f := w.check.Findings()
		s := w.p.Stats()
		t.Logf("%-56s sent %d, acked %d, failed %d, retried batches %d, split %d; read %d: lost %d, duplicated %d, reordered %d, misplaced %d, altered %d",
			w.name, w.sent, f.Acked, len(w.failed), s.Retries, s.Splits, f.Read, f.Lost, f.Duplicated, f.Reordered, f.Misplaced, f.Altered)
		theirs := other[i].Findings()
		theirs.Acked, theirs.Unacked, theirs.Lost, theirs.Misplaced = f.Acked, f.Unacked, f.Lost, f.Misplaced
		require.Equal(t, f, theirs, "%s: Kafka's own consumer finds the same", w.name)
	}
	for _, w := range b.writers {
		f := w.check.Findings()
		require.Empty(t, w.failed, "%s: nothing fails within the delivery timeout", w.name)
		require.EqualValues(t, w.sent, f.Acked, "%s: every message has its outcome", w.name)
		require.Positive(t, w.p.Stats().Retries, "%s: the faults were felt", w.name)
		require.Equal(t, w.most > 0, w.p.Stats().Splits > 0, "P25: %s: the broker has refused batches for their size, which were split", w.name)
		require.Zero(t, f.Lost, w.name)
		require.Zero(t, f.Misplaced, w.name)
		require.Zero(t, f.Altered, w.name)
		if w.inFlight == 1 || w.idempotent {
			require.Zero(t, f.Reordered, w.name)
		}
		if w.idempotent {
			require.True(t, f.Clean(), "%s: %+v", w.name, f)
			require.EqualValues(t, w.sent, f.Read, w.name)
		}
	}
}

// readByUs feeds the checkers with kbench's own reader, and returns how many messages there are.
func (b *orderBed) readByUs() (total int) {
	for _, w := range b.writers {
		require.NoError(b.t, verify.Read(b.ctx, b.admin, w.topic, func(m *client.Message) error {
			total++
			if r, ok := w.record(m.Value, m.Partition, m.Offset); ok {
				w.check.Log(r)
			} else {
				w.check.Altered()
			}
			return nil
		}))
	}
	return total
}

// readByKafka reads the same with Kafka's console consumer.
func (b *orderBed) readByKafka(total int) []*verify.Checker {
	out := b.Script(b.t, "tool", "ConsoleConsumer", "--bootstrap-server", strings.Join(b.Bootstrap, ","),
		"--include", b.prefix+".*", "--from-beginning", "--max-messages", strconv.Itoa(total), "--timeout-ms", "60000",
		"--property", "print.partition=true", "--property", "print.offset=true", "--property", "key.separator=|")
	checks := make([]*verify.Checker, len(b.writers))
	for i := range checks {
		checks[i] = verify.New()
	}
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4) // Partition:0|Offset:0|writer|…
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Partition:") {
			continue // a warning
		}
		p, perr := strconv.Atoi(strings.TrimPrefix(fields[0], "Partition:"))
		at, oerr := strconv.ParseInt(strings.TrimPrefix(fields[1], "Offset:"), 10, 64)
		number, nerr := strconv.Atoi(fields[2])
		if perr != nil || oerr != nil || nerr != nil || number < 0 || number >= len(checks) {
			require.Fail(b.t, "not a line of the console consumer", "%q", line)
		}
		if r, ok := b.writers[number].record([]byte(fields[2]+"|"+fields[3]), int32(p), at); ok {
			checks[number].Log(r)
		} else {
			checks[number].Altered()
		}
	}
	return checks
}
