//go:build kafka

package fault

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Coordinators are killed while their transactions are open, leaders moved, those of the
// transactions' own log too, and connections cut.
func TestKafkaTransactionsWhileCoordinatorsDie(t *testing.T) {
	b := newTxnBed(t)
	struck, missed := 0, []error(nil) // of the goroutine that ends nodes
	var dead []string
	b.during(func() {
		dead = b.disturb(append([]string{"__transaction_state"}, b.topics...), func(turn int) ending {
			e, err := b.strike(turn)
			if err != nil {
				missed = append(missed, err)
				return ending{how: "kill9", node: turn%3 + 1}
			}
			struck++
			return e
		})
	})
	t.Logf("nodes: %s; %d of them coordinated an open transaction; not found: %v", strings.Join(dead, ", "), struck, missed)
	require.Positive(t, struck)
	t.Logf("leaders moved on purpose: %d; elections by error code: %v; proxy: %+v", b.elections[0], b.elections, b.proxy.Stats(AllNodes))
	require.Positive(t, b.elections[0])
	require.NoError(t, b.proxy.Err())
	require.Zero(t, b.proxy.Stats(AllNodes).Untouched)
	b.awaitWhole()
	ours := b.readByUs()
	var retries int64
	for i, theirs := range b.readByKafka(ours) {
		b.judge(b.writers[i], ours[i], theirs)
		retries += b.writers[i].retries
	}
	require.Positive(t, retries, "the faults were felt")
}

// sight is what a reader with read_committed has seen of a writer's topic.
type sight struct {
	check *verify.Checker
	seen  map[int64]int // times, by number
	total int
}

// newSight knows already where the committed messages have to be.
func newSight(w *txnWriter) *sight {
	s := &sight{check: verify.New(), seen: map[int64]int{}}
	for _, x := range w.all {
		if x.fate == committed {
			for _, o := range x.out {
				s.check.Acked(0, o.number, o.partition, o.offset)
			}
		}
	}
	return s
}

func (s *sight) take(w *txnWriter, value []byte, partition int32, offset int64) {
	s.total++
	r, ok := w.record(value, partition, offset)
	if !ok {
		s.check.Altered()
		return
	}
	s.check.Log(r)
	s.seen[r.Number]++
}

// count is how many of a transaction's messages were seen.
func (s *sight) count(x *txn) (n int) {
	for i := range int64(txnSize) {
		n += s.seen[x.first+i]
	}
	return n
}

// judge holds what was read against what the writer was told.
func (b *txnBed) judge(w *txnWriter, ours, theirs *sight) {
	t := b.t
	by := map[fate]int{}
	shown := 0 // of unknown outcome
	for _, x := range w.all {
		by[x.fate]++
		for _, s := range []*sight{ours, theirs} {
			switch n := s.count(x); x.fate {
			case committed:
				require.Equal(t, txnSize, n, "%s: a committed transaction is whole", w.name)
			case aborted:
				require.Zero(t, n, "%s: nothing is seen of one that was aborted", w.name)
			case unknown:
				require.Contains(t, []int{0, txnSize}, n, "%s: all or nothing", w.name)
			}
		}
		if x.fate == unknown && ours.count(x) > 0 {
			shown++
		}
		if x.fate == committed {
			require.Len(t, x.out, txnSize, "%s: what was committed was acknowledged", w.name)
		}
	}
	f := ours.check.Findings()
	t.Logf("%-40s %d transactions: %d committed, %d aborted, %d unknown (%d of them seen); retried batches %d, producers made anew %d, failed calls %v; read %d: lost %d, duplicated %d, reordered %d, misplaced %d, altered %d",
		w.name, len(w.all), by[committed], by[aborted], by[unknown], shown, w.retries, w.anew, w.failed,
		f.Read, f.Lost, f.Duplicated, f.Reordered, f.Misplaced, f.Altered)
	require.Equal(t, f, theirs.check.Findings(), "%s: Kafka's own consumer sees the same", w.name)
	require.True(t, f.Clean(), "%s: %+v", w.name, f)
	require.EqualValues(t, shown*txnSize, f.Unacked, "%s: all others that are seen were committed", w.name)
	require.Positive(t, by[committed], w.name)
	require.Positive(t, by[aborted], w.name)
	b.judgeOffsets(w)
}

// judgeOffsets looks for the offsets of the last transaction that was committed.
func (b *txnBed) judgeOffsets(w *txnWriter) {
	if w.group == "" {
		return
	}
	var possible []int64
	for i := len(w.all) - 1; i >= 0; i-- {
		if w.all[i].fate == aborted {
			continue
		}
		possible = append(possible, w.all[i].first)
		if w.all[i].fate == committed {
			break
		}
	}
	got, err := b.admin.CommittedOffsets(b.ctx, w.group, w.topic, 1)
	require.NoError(b.t, err)
	require.Contains(b.t, possible, got[0], "%s: the group's offset is that of the last committed transaction", w.name)
}

// readByUs reads with kbench's own reader.
func (b *txnBed) readByUs() (all []*sight) {
	cfg := client.NewConfig()
	cfg.Consumer.IsolationLevel = client.ReadCommitted
	c, err := client.NewClientContext(b.ctx, b.Bootstrap, cfg)
	require.NoError(b.t, err)
	defer c.Close()
	for _, w := range b.writers {
		s := newSight(w)
		require.NoError(b.t, verify.Read(b.ctx, c, w.topic, func(m *client.Message) error {
			s.take(w, m.Value, m.Partition, m.Offset)
			return nil
		}))
		all = append(all, s)
	}
	return all
}

// readByKafka reads with Kafka's console consumer, as many messages as there are for us.
func (b *txnBed) readByKafka(ours []*sight) (all []*sight) {
	total := 0
	for i, s := range ours {
		total += s.total
		all = append(all, newSight(b.writers[i]))
	}
	out := b.Script(b.t, "tool", "ConsoleConsumer", "--bootstrap-server", strings.Join(b.Bootstrap, ","),
		"--include", b.prefix+".*", "--from-beginning", "--isolation-level", "read_committed", "--max-messages", strconv.Itoa(total),
		"--timeout-ms", "60000", "--property", "print.partition=true", "--property", "print.offset=true", "--property", "key.separator=|")
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4) // Partition:0|Offset:0|writer|…
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Partition:") {
			continue // a warning
		}
		p, perr := strconv.Atoi(strings.TrimPrefix(fields[0], "Partition:"))
		at, oerr := strconv.ParseInt(strings.TrimPrefix(fields[1], "Offset:"), 10, 64)
		number, nerr := strconv.Atoi(fields[2])
		if perr != nil || oerr != nil || nerr != nil || number < 0 || number >= len(all) {
			require.Fail(b.t, "not a line of the console consumer", "%q", line)
		}
		all[number].take(b.writers[number], []byte(fields[2]+"|"+fields[3]), int32(p), at)
	}
	return all
}
