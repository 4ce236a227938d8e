package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorFor(t *testing.T) {
	require.NoError(t, ErrorFor(0))
	require.NoError(t, ErrorWith(0, nil))
	for code := int16(firstCode); code <= lastCode; code++ {
		if code == 0 {
			continue
		}
		err := ErrorFor(code)
		var k *KafkaError
		require.ErrorAs(t, err, &k, "code %d has no error", code)
		require.Equal(t, code, k.Code)
		require.Contains(t, err.Error(), fmt.Sprintf("%s (error code %d)", k.Name, code))
		require.NotZero(t, Classify(err), "%s has no class", k.Name)
		c := Classify(err)
		require.False(t, c.Has(DefinitelyRefused|OutcomeUnknown), "%s: refused and unknown", k.Name)
		require.False(t, c.Has(Retriable|Fatal), "%s: retriable and fatal", k.Name)
	}
	require.ErrorIs(t, ErrorFor(6), ErrNotLeaderOrFollower)
	require.NotErrorIs(t, ErrorFor(6), ErrLeaderNotAvailable)
	require.ErrorIs(t, ErrorFor(999), &KafkaError{Code: 999})
	for _, unknown := range []int16{999, -2, lastCode + 1, -32768, 32767} {
		require.Equal(t, Fatal|OutcomeUnknown, Classify(ErrorFor(unknown)), "code %d", unknown)
	}
}

func TestCorruptMessageSaysWhatItCanMean(t *testing.T) { // M14
	text := ErrorFor(2).Error()
	for _, meaning := range []string{"CRC", "too large", "null key", "format", "codec"} {
		require.Contains(t, text, meaning)
	}
}

func TestErrorWith(t *testing.T) {
	hostile := "no\nway\x00" + strings.Repeat("é", 400)
	err := ErrorWith(44, &hostile)
	require.ErrorIs(t, err, ErrPolicyViolation)
	require.Equal(t, Fatal|DefinitelyRefused, Classify(err))
	require.Contains(t, err.Error(), "no way")
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 500)
	empty := ""
	require.Equal(t, ErrorFor(44), ErrorWith(44, &empty))
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Class
	}{
		{"nothing", nil, 0},
		{"M3: not leader may come after the append when acks=all", ErrNotLeaderOrFollower, Retriable | RefreshMetadata | OutcomeUnknown},
		{"not enough replicas is decided before the append", ErrNotEnoughReplicas, Retriable | RefreshMetadata | DefinitelyRefused},
		{"P7: … and its sibling after it", ErrNotEnoughReplicasAfterAppend, Retriable | RefreshMetadata | OutcomeUnknown},
		{"P7: the broker timed out waiting for followers", ErrRequestTimedOut, Retriable | OutcomeUnknown},
		{"P25: too large is refused, so it may be split", ErrMessageTooLarge, Fatal | DefinitelyRefused},
		{"P4: a duplicate is a success", ErrDuplicateSequenceNumber, Duplicate},
		{"P11: retention removed the producer's state", ErrUnknownProducerID, BumpEpoch | Abortable | DefinitelyRefused},
		{"P12: a fenced producer is done for", ErrProducerFenced, Fatal | DefinitelyRefused},
		{"P12: the previous transaction is still completing", ErrConcurrentTransactions, Retriable | DefinitelyRefused},
		{"KIP-890: abort and go on", ErrTransactionAbortable, Abortable | DefinitelyRefused},
		{"C5: an old generation rejoins", ErrIllegalGeneration, Rejoin | DefinitelyRefused},
		{"the coordinator moved", ErrNotCoordinator, Retriable | RefreshCoordinator | DefinitelyRefused},
		{"an error of a broker inside others", fmt.Errorf("topic a: %w", ErrInvalidRecord), Fatal | DefinitelyRefused},
		{"the caller gave up", fmt.Errorf("x: %w", context.Canceled), OutcomeUnknown},
		{"the caller's deadline, which also is a net.Error", context.DeadlineExceeded, OutcomeUnknown},
		{"a connection that ended", io.ErrUnexpectedEOF, Retriable | RefreshMetadata | OutcomeUnknown},
		{"a network error", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, Retriable | RefreshMetadata | OutcomeUnknown},
		{"anything else is not retried for ever", errors.New("surprise"), Fatal},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Classify(c.err)) })
	}
}
