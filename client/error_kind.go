package client

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// KafkaError is an error code that a broker answered with; reach it with errors.As.
type KafkaError = wire.KafkaError

// refusals are kinds of errors of opening a connection that say themselves what to do.
var refusals = []error{
	conn.ErrTLSPort, conn.ErrPlaintextPort, conn.ErrTLSHangup, conn.ErrTLSNoAnswer, conn.ErrClosedAfterTLS, conn.ErrTLS,
	conn.ErrCertificate, conn.ErrCertificateName, conn.ErrCertificateDate, conn.ErrClientCertificate,
	conn.ErrNoToken, conn.ErrAuthHangup, conn.ErrNoSASL,
}

// IsRefusal says whether a cluster could not be used because of how it was connected to: TLS, SASL
// or their absence. The error says which it is; other addresses do not help.
func IsRefusal(err error) bool {
	var auth *conn.AuthError
	var mechanism *conn.MechanismError
	if errors.As(err, &auth) || errors.As(err, &mechanism) {
		return true
	}
	return slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
}

// ErrorKind names the kind of an error in a few words without what differs from one occurrence
// to the next (addresses, offsets), for counting: Kafka's own name of the code where a broker
// answered with one, such as NOT_ENOUGH_REPLICAS.
func ErrorKind(err error) string {
	var kafka *KafkaError
	var large *MessageTooLargeError
	var panicked *PanicError
	var network net.Error
	var encoding *EncodeError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrCircuitOpen):
		return "circuit open"
	case errors.As(err, &large):
		return "message too large"
	case errors.As(err, &kafka):
		return kafka.Name
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &encoding):
		return "cannot be encoded"
	case errors.Is(err, ErrTransactionFailed), errors.Is(err, ErrTransactionAborted):
		return "transaction aborted"
	case errors.Is(err, ErrProducerFenced):
		return "producer fenced"
	case errors.Is(err, ErrNoTransaction), errors.Is(err, ErrTransactionEnding), errors.Is(err, ErrNotTransactional), errors.Is(err, ErrTransactionOpen):
		return "no transaction"
	case errors.Is(err, ErrTopicUnknown):
		return "unknown topic"
	case IsRefusal(err):
		return "connection refused by TLS or SASL"
	case errors.Is(err, ErrPartitionInvalid):
		return "partition out of range"
	case errors.Is(err, ErrNoBrokers):
		return "no broker reached"
	case errors.Is(err, conn.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, conn.ErrClosedByBroker), errors.Is(err, io.EOF):
		return "connection closed by broker"
	case errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
		return "closed"
	case errors.Is(err, ErrDeliveryTimeout):
		return "delivery timeout"
	case errors.As(err, &network):
		return "network"
	}
	return "other"
}
