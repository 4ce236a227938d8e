package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
)

// transactional is a load in transactions, received by readers of what is committed.
func transactional(messages int64, t workloads.Transactions) bench {
	b := bench{d: load(messages), cfg: client.NewConfig()}
	b.d.Producers.Transactions = t
	b.cfg.Producer.Idempotent = true
	b.cfg.Consumer.IsolationLevel = client.ReadCommitted
	return b
}

// commit executes a load whose consumers are to receive what is committed and nothing else.
func (b bench) commit(t *testing.T, bootstrap []string) *run.Outcome {
	_, spec := b.target(bootstrap)
	spec.ReadCommitted = b.cfg.Consumer.IsolationLevel == client.ReadCommitted
	out, err := run.Execute(within(t), spec)
	require.NoError(t, err)
	requireTransactions(t, out)
	return out
}

// requireTransactions checks that the counts agree: every message acked is in a transaction whose end is
// known, and what was received is what was committed.
func requireTransactions(t *testing.T, out *run.Outcome) {
	c, txn := out.Run.Counts, out.Run.Transactions
	require.NotNil(t, txn)
	require.Equal(t, c.Acked, txn.CommittedMessages+txn.AbortedMessages)
	require.Zero(t, txn.Unknown+txn.UnknownMessages, "%v", out.Run.Errors)
	require.Equal(t, txn.Committed, out.Run.Series[results.SeriesTransaction].Count)
	require.Equal(t, txn.Committed, out.Run.Series[results.SeriesCommit].Count)
	require.Equal(t, []int64{0, 0, 0, 0}, []int64{c.Lost, c.NotReceived, c.Corrupted, txn.AbortedReceived})
	if txn.ReadCommitted {
		require.Equal(t, txn.CommittedMessages, c.Received)
	} else {
		require.Equal(t, c.Acked, c.Received)
	}
}

// Exactly the committed are read by readers of what is committed, in every form of the producer, and the
// others read everything.
func TestTransactionsOfEveryForm(t *testing.T) {
	for _, form := range []string{"callback", "channels", "sync"} {
		for _, level := range []client.IsolationLevel{client.ReadCommitted, client.ReadUncommitted} {
			t.Run(fmt.Sprint(form, " ", level), func(t *testing.T) {
				b := transactional(1000, workloads.Transactions{Messages: 20, AbortShare: 0.3})
				b.d.Producers.Form, b.cfg.Consumer.IsolationLevel = form, level
				out := b.commit(t, start(t, 2).Bootstrap())
				require.EqualValues(t, 1000, out.Run.Counts.Acked, "%v", out.Run.Errors)
				require.InDelta(t, 300, out.Run.Transactions.AbortedMessages, 40)
				require.Zero(t, out.Run.Transactions.Failed)
			})
		}
	}
}

// As fast as it goes: what is claimed of the messages is sent, whatever fits a transaction.
func TestTransactionsInAClosedLoop(t *testing.T) {
	b := transactional(5000, workloads.Transactions{Messages: 300, Every: 50 * time.Millisecond})
	b.d.Producers.Rate, b.d.Phases.WarmUp, b.d.Phases.WarmUpMessages = 0, 0, 500
	out := b.commit(t, start(t, 1).Bootstrap())
	require.EqualValues(t, 5000, out.Run.Counts.Acked)
	require.EqualValues(t, 5000, out.Run.Transactions.CommittedMessages)
}

// A message waits for the commit of its transaction where only committed ones are read.
func TestArrivalsWaitForTheCommit(t *testing.T) {
	b := transactional(1000, workloads.Transactions{Every: 200 * time.Millisecond})
	out := b.commit(t, start(t, 1).Bootstrap())
	require.GreaterOrEqual(t, out.Run.Series[results.SeriesE2E].MaxNs, int64(150*time.Millisecond), "the first of a transaction waits for nearly all of it")
	require.GreaterOrEqual(t, out.Run.Series[results.SeriesTransaction].MinNs, int64(time.Millisecond))
}

// A message that is refused fails its transaction, which is aborted; the load goes on, and what had been
// acknowledged in it is neither received nor missed.
func TestTransactionsWithRefusedMessages(t *testing.T) {
	for _, form := range []string{"callback", "channels", "sync"} {
		t.Run(form, func(t *testing.T) {
			c := start(t, 1)
			b := transactional(1000, workloads.Transactions{Messages: 50})
			b.d.Producers.Form, b.d.Producers.Count, b.d.Phases.WarmUp = form, 1, 0
			b.cfg.Producer.Flush.MaxMessages = 10
			c.FailProduce(87, 3) // INVALID_RECORD
			out := b.commit(t, c.Bootstrap())
			n, txn := out.Run.Counts, out.Run.Transactions
			require.EqualValues(t, 1000, n.Attempted)
			require.Positive(t, n.Failed)
			require.Zero(t, n.Unknown)
			require.Positive(t, txn.Failed)
			require.LessOrEqual(t, txn.Failed, int64(3))
			require.NotEmpty(t, out.Run.Errors["transaction failed: INVALID_RECORD"]+out.Run.Errors["transaction failed: transaction aborted"])
			require.NotEmpty(t, out.Run.Verdict.Warnings)
		})
	}
}

// A producer that another one of its name fences ends the run, and the error says so. It is fenced again and
// again, for the in-process broker takes what comes in between two transactions for a commit sent twice.
func TestFencedProducerEndsTheRun(t *testing.T) {
	bootstrap, name := start(t, 1).Bootstrap(), "mine"
	b := transactional(100_000, workloads.Transactions{Messages: 20})
	b.d.Producers.Count, b.cfg.Producer.Transaction.ID = 1, name
	_, spec := b.target(bootstrap)
	fenced := false
	spec.Progress = func(p run.Progress) {
		if p.Acked >= 100 {
			fenced = true
			if err := takeOver(t, bootstrap, name); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := run.Execute(within(t), spec)
	require.True(t, fenced)
	require.ErrorIs(t, err, client.ErrProducerFenced)
	require.ErrorContains(t, err, "producer 0: ")
}

// takeOver begins as a transactional producer of that name.
func takeOver(t *testing.T, bootstrap []string, name string) error {
	cfg := client.NewConfig()
	cfg.Producer.Idempotent, cfg.Producer.Transaction.ID = true, name
	p, err := client.NewAsyncProducer(bootstrap, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(within(t)) }() // it has sent nothing
	return p.InitTransactions(within(t))
}

// Producers do not fence each other, and a single one has the very name given.
func TestTransactionalIDs(t *testing.T) {
	for _, tc := range []struct {
		name, given string
		producers   int
		want        []string
	}{
		{"made up for the run", "", 2, []string{"kbench-target-test-ab12-0", "kbench-target-test-ab12-1"}},
		{"of one producer, made up as well", "", 1, []string{"kbench-target-test-ab12-0"}},
		{"given for several", "orders", 2, []string{"orders-0", "orders-1"}},
		{"given for one", "orders", 1, []string{"orders"}},
	} {
		b := transactional(1, workloads.Transactions{Messages: 1})
		b.d.Producers.Count, b.cfg.Producer.Transaction.ID = tc.producers, tc.given
		target, _ := b.target(nil)
		target.suffix = "ab12"
		for id, want := range tc.want {
			require.Equal(t, want, target.transactionalID(id), tc.name)
		}
	}
}
