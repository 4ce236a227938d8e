package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// KafkaError is an error code that a broker answered with. Values are shared and must not be
// changed; compare with errors.Is against the sentinels (ErrNotLeaderOrFollower, …).
type KafkaError struct {
	Code  int16
	Name  string // Kafka's own name, e.g. NOT_LEADER_OR_FOLLOWER
	Hint  string // what it means and what to do; may be empty
	Flags Class
}

func (e *KafkaError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("%s (error code %d)", e.Name, e.Code)
	}
	return fmt.Sprintf("%s (error code %d): %s", e.Name, e.Code, e.Hint)
}

// Class is what Classify answers.
func (e *KafkaError) Class() Class { return e.Flags }

// Is makes errors.Is hold for two errors of the same code, also for codes without a sentinel.
func (e *KafkaError) Is(target error) bool {
	t, ok := target.(*KafkaError)
	return ok && t.Code == e.Code
}

const (
	firstCode = -1
	lastCode  = 133
)

// byCode is filled by define while the package's variables are set up, and only read later.
var byCode [lastCode - firstCode + 1]*KafkaError

func define(code int16, name string, flags Class, hint string) *KafkaError {
	e := &KafkaError{Code: code, Name: name, Hint: hint, Flags: flags}
	byCode[code-firstCode] = e
	return e
}

// ErrorFor is the error of a code, nil for 0. A code that we do not know gives a *KafkaError that
// is fatal with an unknown outcome, since nothing can be said about it.
func ErrorFor(code int16) error {
	if code == 0 {
		return nil
	}
	if code >= firstCode && code <= lastCode && byCode[code-firstCode] != nil {
		return byCode[code-firstCode]
	}
	return &KafkaError{Code: code, Name: fmt.Sprintf("UNKNOWN_ERROR_CODE_%d", code),
		Hint: "the broker is newer than this client", Flags: Fatal | OutcomeUnknown}
}

// AnsweredError is a KafkaError with the broker's own words about it.
type AnsweredError struct {
	Kafka *KafkaError
	Text  string // one line, at most 300 bytes
}

func (e *AnsweredError) Error() string { return e.Kafka.Error() + " (broker: " + e.Text + ")" }
func (e *AnsweredError) Unwrap() error { return e.Kafka }

// ErrorWith is ErrorFor with the message that the broker sent beside the code, if any.
func ErrorWith(code int16, message *string) error {
	err := ErrorFor(code)
	var kafka *KafkaError
	if message == nil || *message == "" || !errors.As(err, &kafka) {
		return err
	}
	return &AnsweredError{Kafka: kafka, Text: OneLine(*message)}
}

// OneLine makes what a broker wrote fit for an error: one line, printable, at most 300 bytes.
func OneLine(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Class says what may be done about an error: a set of flags, since one error often means
// several things ("refresh, then retry; it may have been written").
type Class uint16

// The flags of a Class. At most one of DefinitelyRefused and OutcomeUnknown is set; neither
// where nothing is changed by the request (fetches, look-ups).
const (
	// Retriable: the same request may succeed later, after a backoff.
	Retriable Class = 1 << iota
	// RefreshMetadata: ask for metadata before the next try; leaders or addresses moved.
	RefreshMetadata
	// RefreshCoordinator: look the coordinator up again before the next try.
	RefreshCoordinator
	// Fatal: another try cannot succeed; tell the user.
	Fatal
	// Abortable: in a transaction, abort it and go on with the next one (KIP-691, KIP-890).
	// Outside of one, see BumpEpoch.
	Abortable
	// BumpEpoch: the sequence of an idempotent producer is broken; bump its epoch, start every
	// partition at sequence 0, and send again what is not decided.
	BumpEpoch
	// Rejoin: the member must (re)join its group.
	Rejoin
	// Duplicate: the batch had been written by an earlier try: a success whose offset is unknown.
	Duplicate
	// DefinitelyRefused: nothing of this request took effect, so what it carried may be built
	// anew, split or dropped. It says nothing about earlier tries of the same batch.
	DefinitelyRefused
	// OutcomeUnknown: it may have taken effect. An idempotent producer must resend the same
	// batch, unchanged; others may cause duplicates by resending.
	OutcomeUnknown
)

// Has says whether every flag of f is set.
func (c Class) Has(f Class) bool { return c&f == f }

// Classify says what may be done about err. It looks, in this order, at:
//
//   - nil: no flag.
//   - an error in the chain with a method Class() Class: that one decides. These are the codes of
//     a broker (*KafkaError), *VersionError, and the errors of the connection, which know whether
//     a request had been written when the connection broke.
//   - context.Canceled and DeadlineExceeded: the caller gave up while waiting: OutcomeUnknown
//     and neither Retriable nor Fatal, since the caller's wish decides.
//   - malformed messages (ErrTruncated and its neighbours): Fatal, since the next answer would
//     be as unreadable, and OutcomeUnknown, since the request was carried out.
//   - io.EOF, io.ErrUnexpectedEOF, net.ErrClosed and any net.Error: the connection broke:
//     Retriable on a fresh connection, RefreshMetadata since the broker may be gone, and
//     OutcomeUnknown.
//   - anything else is Fatal: an error that nobody thought of must not be retried for ever.
//
// About codes that surprise: NOT_LEADER_OR_FOLLOWER and UNKNOWN_TOPIC_OR_PARTITION have an
// unknown outcome, because with acks=all the broker also answers them when it loses a partition
// while it waits for followers, after its own append; with acks=1 both mean refused.
// NOT_ENOUGH_REPLICAS is decided before the append, its AFTER_APPEND sibling and
// REQUEST_TIMED_OUT after it.
func Classify(err error) Class {
	if err == nil {
		return 0
	}
	var own interface{ Class() Class }
	if errors.As(err, &own) {
		return own.Class()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return OutcomeUnknown
	}
	for _, malformed := range []error{ErrTruncated, ErrLength, ErrVarint, ErrNull, ErrTrailing} {
		if errors.Is(err, malformed) {
			return Fatal | OutcomeUnknown
		}
	}
	var network net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) {
		return Retriable | RefreshMetadata | OutcomeUnknown
	}
	return Fatal
}
