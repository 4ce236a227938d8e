package client

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// txnStep is one thing that happens to a txnMachine.
type txnStep func(*txnMachine) error

var errOfTest = errors.New("of the test")

var (
	txnBegin     txnStep = func(m *txnMachine) error { return m.begin() }
	txnAdmit     txnStep = func(m *txnMachine) error { return m.admit() }
	txnSent      txnStep = func(m *txnMachine) error { m.touch(true); return nil }
	txnAsked     txnStep = func(m *txnMachine) error { m.touch(false); return nil }
	txnFails     txnStep = func(m *txnMachine) error { m.fail(errOfTest); return nil }
	txnBreaks    txnStep = func(m *txnMachine) error { m.breakNumbering(); return nil }
	txnDies      txnStep = func(m *txnMachine) error { m.die(because(ErrProducerFenced, errOfTest)); return nil }
	txnCommit    txnStep = func(m *txnMachine) error { _, err := m.commit(); return err }
	txnFlushed   txnStep = func(m *txnMachine) error { return m.flushed(nil) }
	txnNotFlush  txnStep = func(m *txnMachine) error { return m.flushed(errOfTest) }
	txnUnsent    txnStep = func(m *txnMachine) error { return m.commitGivenUp(false, errOfTest) }
	txnNoAnswer  txnStep = func(m *txnMachine) error { return m.commitGivenUp(true, errOfTest) }
	txnRefused   txnStep = func(m *txnMachine) error { return m.commitRefused(false, errOfTest) }
	txnRefusedV  txnStep = func(m *txnMachine) error { return m.commitRefused(true, errOfTest) }
	txnAbort     txnStep = func(m *txnMachine) error { return m.abort() }
	txnConfirmed txnStep = func(m *txnMachine) error { m.confirmed(false); return nil }
	txnRaised    txnStep = func(m *txnMachine) error { m.confirmed(true); return nil }
	txnInit      txnStep = func(m *txnMachine) error { m.initialised(); m.ready(); return nil }
)

func TestTransactionStates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []txnStep
		state txnState
		errs  []error // of the last step, all of them; the others must return nil
	}{
		{"nothing is taken before a transaction is begun", []txnStep{txnAdmit}, txnNew, []error{ErrNoTransaction}},
		{"nor between two", []txnStep{txnInit, txnAdmit}, txnReady, []error{ErrNoTransaction}},
		{"messages are taken in a transaction", []txnStep{txnInit, txnBegin, txnAdmit}, txnOpen, nil},
		{"there is one at a time", []txnStep{txnBegin, txnBegin}, txnOpen, []error{ErrTransactionOpen}},
		{"nothing can be committed outside", []txnStep{txnInit, txnCommit}, txnReady, []error{ErrNoTransaction}},
		{"nor aborted", []txnStep{txnInit, txnAbort}, txnReady, []error{ErrNoTransaction}},
		{"a commit takes no more messages", []txnStep{txnBegin, txnCommit, txnAdmit}, txnCommitting, []error{ErrTransactionEnding}},
		{"a confirmed commit makes ready for the next", []txnStep{txnBegin, txnSent, txnCommit, txnFlushed, txnConfirmed}, txnReady, nil},
		{"a commit whose flush was given up leaves the transaction open", []txnStep{txnBegin, txnCommit, txnNotFlush}, txnOpen, []error{errOfTest}},
		{"a failure allows nothing but an abort", []txnStep{txnBegin, txnFails, txnAdmit}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"no commit after a failure", []txnStep{txnBegin, txnFails, txnCommit}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"no begin after a failure", []txnStep{txnBegin, txnFails, txnBegin}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"a failure while flushing refuses the commit", []txnStep{txnBegin, txnCommit, txnFails, txnFlushed}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"even when the flush was given up", []txnStep{txnBegin, txnCommit, txnFails, txnNotFlush}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"an abort after a failure makes ready", []txnStep{txnBegin, txnFails, txnAbort, txnConfirmed}, txnReady, nil},
		{"an abort takes no messages", []txnStep{txnBegin, txnAbort, txnAdmit}, txnAborting, []error{ErrTransactionEnding}},
		{"an abort may be asked for again", []txnStep{txnBegin, txnAbort, txnAbort}, txnAborting, nil},
		{"no commit after an abort was asked for", []txnStep{txnBegin, txnAbort, txnCommit}, txnAborting, []error{ErrTransactionEnding}},
		{"failures while aborting change nothing", []txnStep{txnBegin, txnAbort, txnFails}, txnAborting, nil},
		{"a broken numbering needs another epoch", []txnStep{txnBegin, txnBreaks, txnFails, txnAbort, txnConfirmed}, txnAborting, nil},
		{"which the end itself may bring", []txnStep{txnBegin, txnBreaks, txnFails, txnAbort, txnRaised}, txnReady, nil},
		{"the end is not asked for twice while the epoch is", []txnStep{txnBegin, txnSent, txnBreaks, txnAbort, txnConfirmed, txnAbort, txnEndNotNeeded}, txnAborting, nil},
		{"P13: a commit that was not sent leaves the transaction open", []txnStep{txnBegin, txnCommit, txnFlushed, txnUnsent}, txnOpen, []error{errOfTest}},
		{"P13: a commit without an answer is unknown", []txnStep{txnBegin, txnCommit, txnFlushed, txnNoAnswer}, txnUnknown, []error{ErrOutcomeUnknown, errOfTest}},
		{"P13: it may be committed again", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnCommit}, txnUnknown, nil},
		{"P13: and stays unknown until it is confirmed", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnCommit, txnUnsent}, txnUnknown, []error{ErrOutcomeUnknown}},
		{"P13: then it is committed", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnCommit, txnConfirmed}, txnReady, nil},
		{"P13: no abort while unknown", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnAbort}, txnUnknown, []error{ErrTransactionEnding}},
		{"P13: no messages while unknown", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnAdmit}, txnUnknown, []error{ErrTransactionEnding}},
		{"P13: a producer that ends while unknown says both", []txnStep{txnBegin, txnCommit, txnFlushed, txnSwallow(txnNoAnswer), txnDies, txnCommit}, txnFatal, []error{ErrOutcomeUnknown, ErrProducerFenced}},
		{"a commit that the cluster refuses is to be aborted", []txnStep{txnBegin, txnCommit, txnFlushed, txnRefused}, txnFailed, []error{ErrTransactionFailed, errOfTest}},
		{"P13: refused after a try without an answer is unknown too", []txnStep{txnBegin, txnCommit, txnFlushed, txnRefusedV}, txnFailed, []error{ErrTransactionFailed, ErrOutcomeUnknown}},
		{"P12: a fenced producer takes nothing", []txnStep{txnBegin, txnDies, txnAdmit}, txnFatal, []error{ErrProducerFenced, errOfTest}},
		{"P12: commits nothing", []txnStep{txnBegin, txnDies, txnCommit}, txnFatal, []error{ErrProducerFenced}},
		{"P12: aborts nothing", []txnStep{txnBegin, txnDies, txnAbort}, txnFatal, []error{ErrProducerFenced}},
		{"P12: begins nothing", []txnStep{txnBegin, txnDies, txnBegin}, txnFatal, []error{ErrProducerFenced}},
		{"P12: whatever is confirmed then", []txnStep{txnBegin, txnAbort, txnDies, txnConfirmed, txnAdmit}, txnFatal, []error{ErrProducerFenced}},
		{"P12: while committing too", []txnStep{txnBegin, txnCommit, txnDies, txnFlushed}, txnFatal, []error{ErrProducerFenced}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m txnMachine
			for i, step := range tc.steps {
				err := step(&m)
				if i < len(tc.steps)-1 || len(tc.errs) == 0 {
					require.NoError(t, err, "step %d", i)
					continue
				}
				for _, want := range tc.errs {
					require.ErrorIs(t, err, want)
				}
			}
			require.Equal(t, tc.state, m.state, "%v", m.state)
		})
	}
}

func txnSwallow(s txnStep) txnStep { return func(m *txnMachine) error { _ = s(m); return nil } }

func txnEndNotNeeded(m *txnMachine) error {
	if m.endNeeded() {
		return errors.New("the end is needed")
	}
	return nil
}

func TestTheCoordinatorIsToldOfTheEndOfWhatItKnows(t *testing.T) {
	for _, tc := range []struct {
		name           string
		steps          []txnStep
		needed, absent bool
	}{
		{"an empty transaction is nobody's business", []txnStep{txnBegin, txnAbort}, false, true},
		{"what it may know of is ended; it may turn out to be absent", []txnStep{txnBegin, txnAsked, txnAbort}, true, true},
		{"what it knows of must be there", []txnStep{txnBegin, txnAsked, txnSent, txnAbort}, true, false},
		{"a second transaction begins with nothing known", []txnStep{txnBegin, txnSent, txnAbort, txnConfirmed, txnBegin}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m txnMachine
			for _, step := range tc.steps {
				require.NoError(t, step(&m))
			}
			require.Equal(t, tc.needed, m.endNeeded())
			require.Equal(t, tc.absent, m.absent())
		})
	}
}

func TestOnlyTheFirstFailureIsNews(t *testing.T) {
	m := txnMachine{state: txnOpen}
	require.True(t, m.fail(errOfTest))
	require.False(t, m.fail(errors.New("another")))
	require.ErrorIs(t, m.admit(), errOfTest)
	require.True(t, m.die(ErrProducerFenced))
	require.False(t, m.die(ErrProducerFailed))
	require.ErrorIs(t, m.admit(), ErrProducerFenced)
}
