package synthetic_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// inTransactions is a definition that sends in transactions.
func inTransactions(rate float64, length time.Duration, t workloads.Transactions) workloads.Definition {
	d := definition(rate, length)
	d.Producers.Transactions = t
	return d
}

// A thousand messages a second, answered after 1 ms; a transaction ends when it has been open for 100 ms,
// which takes 4 ms. So they follow each other every 104 ms, and hold as many messages.
func TestTransactionsByTime(t *testing.T) {
	out := measure(t, inTransactions(1000, 10396*ms, workloads.Transactions{Every: 100 * ms}),
		synthetic.Script{Latency: ms, EndTxn: 4 * ms})
	txn, c := out.Run.Transactions, out.Run.Counts
	require.EqualValues(t, 10396, c.Acked)
	require.Equal(t, &results.Transactions{Committed: 100, CommittedMessages: 10396}, txn)
	whole, commit := out.Run.Series[results.SeriesTransaction], out.Run.Series[results.SeriesCommit]
	require.EqualValues(t, []int64{100, 100}, []int64{whole.Count, commit.Count})
	near(t, 104*ms, whole.P50Ns, "transaction")
	near(t, 5*ms, commit.MaxNs, "commit of the last, which the end of the load cuts short: it waits for an answer as well")
	near(t, 4*ms, commit.P50Ns, "commit")
	// The messages that were due while it was committed waited, and their response says so.
	response, delay := out.Run.Series[results.SeriesResponse], out.Run.Series[results.SeriesDelay]
	near(t, 5*ms, response.MaxNs, "response of a message that was due as the commit began: 4 ms and its own answer")
	near(t, 4*ms, delay.MaxNs, "its delay")
	near(t, ms, out.Run.Series[results.SeriesService].MaxNs, "service is the cluster's alone")
	require.Zero(t, out.Run.Generator.LatenessMaxNs, "a commit is no lateness of the pacer")
	require.True(t, out.Run.Verdict.Valid, "%v", out.Run.Verdict.Reasons)
}

// A transaction ends when its time has come although nothing is due, not with the next message.
func TestTransactionEndsWhileNothingIsDue(t *testing.T) {
	out := measure(t, inTransactions(1, 10*time.Second, workloads.Transactions{Every: 50 * ms}), synthetic.Script{Latency: ms, EndTxn: ms})
	require.EqualValues(t, 10, out.Run.Transactions.Committed)
	near(t, 51*ms, out.Run.Series[results.SeriesTransaction].MaxNs, "transaction")
	near(t, ms, out.Run.Series[results.SeriesResponse].MaxNs, "nobody waited for it")
}

// By number, whatever a run would hold; the last is ended with the load, however few it has.
func TestTransactionsByMessages(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rate      float64
		producers int
		messages  int64
	}{
		{"at a rate", 1000, 1, 0},
		{"at a rate that comes in bursts of a run", 100_000, 1, 0},
		{"by two producers, each its own", 1000, 2, 0},
		{"in a closed loop", 0, 1, 5000},
		{"in a closed loop of three producers", 0, 3, 5000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := inTransactions(tc.rate, time.Second, workloads.Transactions{Messages: 7})
			d.Producers.Count = tc.producers
			if d.Producers.Messages = tc.messages; tc.messages > 0 {
				d.Phases.Duration = 0
			}
			if tc.rate > 1000 {
				d.Producers.Schedule = workloads.Schedule{Kind: "burst", BurstEvery: 100 * ms}
			}
			out := measure(t, d, synthetic.Script{Latency: ms, Capacity: 1e6})
			c, txn := out.Run.Counts, out.Run.Transactions
			require.Equal(t, c.Attempted, c.Acked)
			require.Positive(t, c.Acked)
			require.Equal(t, c.Acked, txn.CommittedMessages)
			least := (c.Acked + 6) / 7
			require.GreaterOrEqual(t, txn.Committed, least)
			require.Less(t, txn.Committed, least+int64(tc.producers))
			require.Zero(t, txn.Aborted+txn.Failed+txn.Unknown+txn.UnknownMessages)
			if tc.messages > 0 {
				require.Equal(t, tc.messages, c.Acked, "a claim that a full transaction cuts short is not lost")
			}
		})
	}
}

// What is aborted is spread evenly, and is in no series of what was committed.
func TestTransactionsThatAreAborted(t *testing.T) {
	out := measure(t, inTransactions(1000, 10*time.Second, workloads.Transactions{Messages: 10, AbortShare: 0.25}), synthetic.Script{Latency: ms})
	require.Equal(t, &results.Transactions{Committed: 750, Aborted: 250, CommittedMessages: 7500, AbortedMessages: 2500}, out.Run.Transactions)
	require.EqualValues(t, 750, out.Run.Series[results.SeriesTransaction].Count)
	require.EqualValues(t, 10_000, out.Run.Counts.Acked, "the broker acknowledged them")
}

// A commit that fails is aborted, and the load goes on.
func TestTransactionsThatFail(t *testing.T) {
	out := measure(t, inTransactions(1000, 10*time.Second, workloads.Transactions{Messages: 100}), synthetic.Script{Latency: ms, FailCommit: 4})
	require.Equal(t, &results.Transactions{Committed: 75, Failed: 25, CommittedMessages: 7500, AbortedMessages: 2500}, out.Run.Transactions)
	require.Equal(t, map[string]int64{"transaction failed: " + run.ErrTransactionFailed.Error(): 25}, out.Run.Errors)
	require.Contains(t, out.Run.Verdict.Warnings, "25 of 100 transactions failed and were aborted: the acked messages in aborted ones, 2500, count as acked, and no reader of committed messages sees them")
}

// A commit that nobody confirms is unknown once the drain is over, and so are its messages.
func TestTransactionWithoutEnd(t *testing.T) {
	d := inTransactions(1000, 10*time.Second, workloads.Transactions{Messages: 1000})
	d.Phases.Drain = time.Second
	out := measure(t, d, synthetic.Script{Latency: ms, LoseCommit: 10})
	require.Equal(t, &results.Transactions{Committed: 9, Unknown: 1, CommittedMessages: 9000, UnknownMessages: 1000}, out.Run.Transactions)
	require.False(t, out.Run.Verdict.Valid)
	require.Contains(t, out.Run.Verdict.Reasons, "1 of 10 transactions without a known end (drain 1s), limit 0: nobody knows whether 1000 acked messages in them were committed")
}

// An interrupt ends the open transaction, within its bound.
func TestInterruptEndsTheTransaction(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script synthetic.Script
		want   results.Transactions
	}{
		{"in time", synthetic.Script{Latency: ms, EndTxn: 100 * ms}, results.Transactions{Committed: 1}},
		{"too slow", synthetic.Script{Latency: ms, EndTxn: time.Hour}, results.Transactions{Unknown: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := execute(t, run.Spec{Definition: inTransactions(1000, time.Hour, workloads.Transactions{Every: 59 * time.Minute})},
				tc.script, func(p run.Progress) bool { return p.Acked > 1000 })
			require.ErrorIs(t, err, run.ErrInterrupted)
			got := *out.Run.Transactions
			require.Equal(t, out.Run.Counts.Acked, got.CommittedMessages+got.UnknownMessages)
			got.CommittedMessages, got.UnknownMessages = 0, 0
			require.Equal(t, tc.want, got)
		})
	}
}

// A producer that is of no more use ends the run, and the error says what it was doing.
func TestTransactionsEndTheRun(t *testing.T) {
	fenced := errors.New("another took over")
	for _, tc := range []struct {
		name   string
		script synthetic.Script
		want   string
	}{
		{"in the beginning", synthetic.Script{BeginErr: fenced}, "producer 0: beginning a transaction: another took over"},
		{"at the end", synthetic.Script{EndErr: fenced}, "producer 0: committing a transaction: another took over"},
		{"while sending", synthetic.Script{SendErr: fenced}, "producer 0: sending: another took over"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := execute(t, run.Spec{Definition: inTransactions(1000, time.Second, workloads.Transactions{Messages: 100})}, tc.script, nil)
			require.ErrorIs(t, err, fenced)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// When Send says that the transaction has failed it is aborted, what was not taken goes into the next, and
// nothing is lost of a claim in a closed loop.
func TestTransactionFailsWhileSending(t *testing.T) {
	for _, rate := range []float64{1000, 0} {
		d := inTransactions(rate, 0, workloads.Transactions{Messages: 100})
		d.Producers.Messages, d.Producers.Run = 1000, 30
		d.Phases.WarmUpMessages = 200
		out := measure(t, d, synthetic.Script{Latency: ms, FailSend: 150})
		c, txn := out.Run.Counts, out.Run.Transactions
		require.EqualValues(t, 1000, c.Attempted)
		require.EqualValues(t, 1000, c.Acked)
		require.Positive(t, txn.Failed)
		require.Equal(t, c.Acked, txn.CommittedMessages+txn.AbortedMessages)
		require.Positive(t, txn.AbortedMessages)
	}
}

// Readers of committed messages must not see what was aborted: what they see of it is counted, and what
// they do not see is not missed. Those who read everything are to get everything.
func TestAbortedMessagesAmongTheArrivals(t *testing.T) {
	for _, committed := range []bool{true, false} {
		d := consuming(1000, 5*time.Second)
		d.Producers.Count, d.Phases.WarmUp = 1, 0
		d.Producers.Transactions = workloads.Transactions{Messages: 10, AbortShare: 0.5}
		out, err := execute(t, run.Spec{Definition: d, ReadCommitted: committed}, synthetic.Script{Latency: ms, Delivery: ms, Partitions: 4, Lose: 4}, nil)
		require.NoError(t, err)
		txn, c := out.Run.Transactions, out.Run.Counts
		require.EqualValues(t, 2500, txn.AbortedMessages)
		require.Equal(t, committed, txn.ReadCommitted)
		shown := conditionOn(out, "abortedReceived=0")
		if !committed {
			require.Zero(t, txn.AbortedReceived)
			require.Empty(t, shown)
			require.EqualValues(t, 1250, c.Lost, "every fourth does not arrive")
			continue
		}
		require.EqualValues(t, 1750, txn.AbortedReceived, "of messages 10 to 19, and so on, all but 11, 15 and 19 arrive")
		require.Equal(t, c.Received-(txn.CommittedMessages-c.Lost), txn.AbortedReceived)
		require.EqualValues(t, 500, c.Lost, "3 and 7 of messages 0 to 9, and so on, which were committed")
		require.Len(t, shown, 1)
		require.False(t, shown[0].Held)
	}
}

// conditionOn are the thresholds of a run with that expression.
func conditionOn(out *run.Outcome, expression string) (list []results.Threshold) {
	for _, t := range out.Run.Thresholds {
		if t.Expression == expression {
			list = append(list, t)
		}
	}
	return list
}
