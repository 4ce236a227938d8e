package run

import (
	"math"

	"github.com/kbench/kbench/workloads"
)

// turns says when a producer's transactions end, and how. Time and messages are told.
type turns struct {
	every, most int64 // ns and messages; as many as there are without a bound
	abortShare  float64

	open  bool
	ends  int64 // when the open one is to end
	sent  int64 // messages of the open one
	first int64 // the producer's number of its first message
	began int64
	owed  float64 // of an abort
}

// newTurns gives nil for a workload without transactions.
func newTurns(t *workloads.Transactions) *turns {
	if !t.On() {
		return nil
	}
	out := &turns{every: int64(t.Every), most: t.Messages, abortShare: t.AbortShare}
	if out.every <= 0 {
		out.every = someDay
	}
	if out.most <= 0 {
		out.most = math.MaxInt64
	}
	return out
}

// begin takes in that a transaction was opened at an instant; seq is the number of its first message.
func (t *turns) begin(now, seq int64) {
	t.open, t.began, t.ends, t.first, t.sent = true, now, now+t.every, seq, 0
}

// due says whether the open transaction is to end.
func (t *turns) due(now int64) bool { return t.open && (now >= t.ends || t.sent >= t.most) }

// room is how many messages may yet go into the open transaction.
func (t *turns) room() int64 { return t.most - t.sent }

// commits decides whether the transaction that ends is committed: aborts are spread evenly.
func (t *turns) commits() bool {
	const rounding = 1e-9
	if t.owed += t.abortShare; t.owed >= 1-rounding {
		t.owed--
		return false
	}
	return true
}
