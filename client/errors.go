package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// Errors of the client. Compare with errors.Is; brokers' own errors are wire.KafkaError values,
// reached with errors.As.
var (
	// ErrClosed is returned by everything used after Close, and by what Close cut short.
	ErrClosed = errors.New("kafka client is closed")
	// ErrOutcomeUnknown marks a message that was written and whose answer never came: it may be
	// in the log or not.
	ErrOutcomeUnknown = errors.New("outcome unknown: the request was written, no answer came")
	// ErrDeliveryTimeout marks a message without an outcome within Producer.DeliveryTimeout.
	ErrDeliveryTimeout = errors.New("not delivered within producer.deliveryTimeout")
	// ErrDropped is reported with acks=0 when a broker closes a connection: what was written to
	// it last, and counts as sent, may not be in the log.
	ErrDropped = errors.New("connection lost on which nothing is answered (producer.requiredAcks=0)")
	// ErrNoBrokers is returned when no seed and no known broker answers.
	ErrNoBrokers = errors.New("no broker could be reached")
	// ErrRetriesExhausted wraps the last error of a message that was retried Retry.Max times.
	ErrRetriesExhausted = errors.New("retries exhausted")
	// ErrTopicUnknown is returned for a topic that the cluster does not have.
	ErrTopicUnknown = errors.New("unknown topic")
	// ErrPartitionInvalid is returned when a partitioner names a partition the topic has not.
	ErrPartitionInvalid = errors.New("partition out of range")
)

// MessageTooLargeError is the failure of a message over its size limit.
type MessageTooLargeError struct {
	Size  int    // of the message as a batch of its own, in bytes: before compression, or as it was to be sent
	Limit int    // that it exceeds, in bytes; 0 where a broker refused it and does not tell
	Whose string // the setting that holds the limit
	Err   error  // what a broker says, of this message or of others before; nil for our own limit
}

func (e *MessageTooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("message of %d bytes is larger than the broker takes: %v", e.Size, e.Err)
	}
	return fmt.Sprintf("message of %d bytes is larger than %s (%d bytes)", e.Size, e.Whose, e.Limit)
}

func (e *MessageTooLargeError) Unwrap() error { return e.Err }

// UnsupportedCodecError is the failure of messages whose codec the broker does not know: nothing
// was sent.
type UnsupportedCodecError struct {
	Codec   record.Codec
	Version int16 // of Produce requests, the newest that both sides may use
	Needs   int16 // the first version with the codec
}

func (e *UnsupportedCodecError) Error() string {
	return fmt.Sprintf("producer.compression=%v needs Produce requests of version %d or later, this broker "+
		"(or the version setting) allows %d: Kafka 2.1 is the first with it; choose another codec", e.Codec, e.Needs, e.Version)
}

// Class is what wire.Classify answers: another try meets the same versions.
func (e *UnsupportedCodecError) Class() wire.Class { return wire.Fatal | wire.DefinitelyRefused }

// codecFits refuses zstd in Produce requests whose version brokers without it understand as well
// (KIP-110): they would answer with an error, or store what their consumers cannot read.
func codecFits(codec record.Codec, version int16) error {
	const firstZstd = 7
	if codec == record.ZSTD && version < firstZstd {
		return &UnsupportedCodecError{Codec: codec, Version: version, Needs: firstZstd}
	}
	return nil
}

// PanicError is a panic in a user's function or in a stage, delivered as a failure.
type PanicError struct {
	Where string // the function that panicked
	Value any    // what it panicked with
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.Where, e.Value) }

// ConfigProblem is one thing wrong with a Config.
type ConfigProblem struct{ Key, Text string }

// ConfigError lists every problem of a Config at once.
type ConfigError struct{ Problems []ConfigProblem }

func (e *ConfigError) Error() string {
	s := "invalid configuration:"
	for _, p := range e.Problems {
		s += "\n  " + p.Key + ": " + p.Text
	}
	return s
}

// silentError is why another broker is asked.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Class is what wire.Classify answers.
func (e *silentError) Class() wire.Class { return wire.Retriable | wire.RefreshMetadata }

// startingError is what a broker says in effect that has just started and does not know of any
// broker yet, itself included.
type startingError struct{}

func (startingError) Error() string {
	return "described a cluster without brokers; it may be starting"
}

// Class is what wire.Classify answers.
func (startingError) Class() wire.Class { return wire.Retriable | wire.RefreshMetadata }

// nodeGoneError is why nothing can be sent to a node.
type nodeGoneError struct {
	id   int32
	addr string // empty: not known any more
}

func (e *nodeGoneError) Error() string {
	if e.addr == "" {
		return fmt.Sprintf("broker %d has left the cluster", e.id)
	}
	return fmt.Sprintf("broker %d at %s has left the cluster or moved", e.id, e.addr)
}

func (e *nodeGoneError) Unwrap() error { return ErrNoBrokers }

// Class is what wire.Classify answers: whoever wanted the node has to look where its partitions
// are now. Nothing was sent.
func (e *nodeGoneError) Class() wire.Class {
	return wire.Retriable | wire.RefreshMetadata | wire.DefinitelyRefused
}

// addressError says which broker an error came from.
type addressError struct {
	addr string
	err  error
}

func (e *addressError) Error() string {
	prefix, text := "broker "+e.addr+": ", e.err.Error()
	if strings.HasPrefix(text, prefix) || strings.HasPrefix(text, "connection to "+prefix) {
		return text // the connection has said it
	}
	return prefix + text
}

func (e *addressError) Unwrap() error { return e.err }
