package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// ErrNeedsGroup is returned by what only a member of a consumer group can do.
var ErrNeedsGroup = errors.New("this needs a consumer group; the reader has none (it reads partitions with offsets of its own)")

// ErrGroupOffsets is returned by what moves the position of a reader that is a member of a group.
var ErrGroupOffsets = errors.New("a member of a consumer group does not move by itself: it goes on where the group has committed (leave groupID empty for offsets of the application's own)")

// ReadError says that reading a partition failed, and where. Err says why.
//
// Unless Passing, the partition stands still at Offset until SetOffset moves it; the reader's
// other partitions go on.
type ReadError struct {
	Topic     string
	Partition int32
	Offset    int64 // the position; negative: a start that could not be resolved yet
	Passing   bool  // a failure that may pass, reported after MaxAttempts; it is tried on
	Err       error
}

func (e *ReadError) Error() string {
	s := fmt.Sprintf("reading topic %q partition %d at offset %d: %v", e.Topic, e.Partition, e.Offset, e.Err)
	if e.Passing {
		s += " (still trying)"
	}
	return s
}

func (e *ReadError) Unwrap() error { return e.Err }

// OffsetOutOfRangeError is the failure of a position that is not in the log, when the policy for
// that (consumer.outOfRange) is error.
type OffsetOutOfRangeError struct {
	Offset      int64
	First, Last int64 // the log goes from First to just before Last, as the leader says
}

func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("offset %d is out of range: the log goes from %d to %d; SetOffset, or set consumer.outOfRange to earliest or latest",
		e.Offset, e.First, e.Last)
}

func (e *OffsetOutOfRangeError) Unwrap() error { return wire.ErrOffsetOutOfRange }

// answerError is an answer that breaks the rules of fetching, though it can be decoded.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// Class for wire.Classify: another answer may be right; the position does not move meanwhile.
func (e *answerError) Class() wire.Class { return wire.Retriable | wire.RefreshMetadata }

var (
	errLeftOut   = &answerError{"the broker left the partition out of its answer"}
	errStuck     = &answerError{"the broker answered with records from before the position only"}
	errCut       = &answerError{"the broker cut the first batch in two, and net.maxResponseBytes does not allow to ask for more"}
	errDiverging = &answerError{"the broker says that the log parts from the one that was read, and not properly where"}
	errNoFollow  = &answerError{"the replica that the leader named to read from is not known, or not in service"}
)

// suspectTries is how many answers in a row may be broken or damaged before that is reported.
const suspectTries = 3

// suspect says that err is about what the broker said, not about whether it could be reached:
// one damaged connection may explain it, three in a row do not.
func suspect(err error) bool {
	var broken *conn.ProtocolError
	var decode *conn.DecodeError
	var answer *answerError
	if errors.As(err, &broken) || errors.As(err, &decode) || errors.As(err, &answer) || errors.Is(err, wire.ErrCorruptMessage) {
		return true
	}
	for _, malformed := range []error{wire.ErrTruncated, wire.ErrLength, wire.ErrVarint, wire.ErrNull, wire.ErrTrailing} {
		if errors.Is(err, malformed) {
			return true
		}
	}
	return false
}

// verdict is what becomes of a partition after a failure.
type verdict int8

const (
	tryOn   verdict = iota
	tellOn          // report, and try on
	giveUp          // report, and stand still
	silence         // the reader is closing
)

// goneErrors say that a topic or partition is not there. Brokers may be behind in that.
var goneErrors = []error{
	wire.ErrUnknownTopicOrPartition, wire.ErrUnknownTopicID, wire.ErrInconsistentTopicID, ErrTopicUnknown, ErrPartitionInvalid,
}

// gone says that an error is one of goneErrors.
func gone(err error) bool {
	return slices.ContainsFunc(goneErrors, func(e error) bool { return errors.Is(err, e) })
}

// judge decides about the given number of failures in a row, the last of which is err. missing is
// for how long brokers have been saying that the partition is not there (M6): after metadata.timeout
// it was most likely deleted, before that they may be behind.
func (r *Reader) judge(err error, failures int, missing time.Duration) verdict {
	switch {
	case r.life.Err() != nil:
		return silence
	case suspect(err):
		return giveUpAfter(failures, suspectTries)
	case gone(err) && missing >= r.client.cfg.Metadata.Timeout:
		return giveUpAfter(failures, suspectTries)
	case !gone(err) && !passing(err):
		return giveUp
	case r.cfg.MaxAttempts > 0 && failures%r.cfg.MaxAttempts == 0:
		return tellOn
	}
	return tryOn
}

// passing says that trying again may help. A deadline that passed is one of the client's own: the
// user's contexts do not reach here.
func passing(err error) bool {
	var contact *contactError
	switch {
	case errors.As(err, &contact):
		return slices.ContainsFunc(contact.errs, passing)
	case errors.Is(err, context.DeadlineExceeded):
		return true
	}
	return wire.Classify(err).Has(wire.Retriable)
}

func giveUpAfter(failures, limit int) verdict {
	if failures >= limit {
		return giveUp
	}
	return tryOn
}
