package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// Causes of a ClosedError, for errors.Is.
var (
	// ErrClosed: our side closed it.
	ErrClosed = errors.New("closed by the client")
	// ErrTimeout: a request was not written or not answered in time. The connection is dropped
	// then, because answers come in order, and with it everything in flight.
	ErrTimeout = errors.New("request timed out")
	// ErrClosedByBroker: the other side closed it, as brokers do with idle connections and when
	// they stop. A new connection may be tried at once.
	ErrClosedByBroker = errors.New("closed by broker")
	// ErrNoSASL: no more than a guess, from a listener that closes after the first request.
	ErrNoSASL = errors.New("this listener may ask for SASL authentication, and none is configured")
)

// ClosedError says that a connection is closed, and why.
type ClosedError struct {
	Addr  string
	Cause error
	// Sent: some of the request may have reached the broker, which may have carried it out.
	Sent bool
}

func (e *ClosedError) Error() string {
	if text := e.Cause.Error(); strings.HasPrefix(text, "broker "+e.Addr) {
		return text // the cause has said which
	}
	return fmt.Sprintf("connection to broker %s: %v", e.Addr, e.Cause)
}

func (e *ClosedError) Unwrap() error { return e.Cause }

// Class for wire.Classify: another connection may do, unless the broker does not let us in.
func (e *ClosedError) Class() wire.Class {
	class := wire.Retriable | wire.RefreshMetadata
	var auth *AuthError
	if errors.As(e.Cause, &auth) {
		class = auth.Class()
	}
	class &^= wire.DefinitelyRefused
	if e.Sent {
		return class | wire.OutcomeUnknown
	}
	return class | wire.DefinitelyRefused
}

// ProtocolError says that what the other side sent is not the Kafka protocol, or breaks it. The
// connection is closed then, since nothing after it can be understood.
type ProtocolError struct {
	What  string
	First [8]byte // the bytes in question: a length and a correlation id
}

func (e *ProtocolError) Error() string { return "broken protocol: " + e.What }

// Class for wire.Classify: it may have been one damaged connection.
func (e *ProtocolError) Class() wire.Class {
	return wire.Retriable | wire.RefreshMetadata | wire.OutcomeUnknown
}

func (c *Conn) protocolError(first [8]byte, what string) error {
	return &ProtocolError{What: what, First: first}
}

// DecodeError says that an answer could not be decoded.
type DecodeError struct {
	Addr         string
	Key, Version int16
	Err          error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("broker %s: cannot decode the answer to %s version %d: %v", e.Addr, kmsg.NameForKey(e.Key), e.Version, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// Class for wire.Classify: the next answer would be as unreadable, and the request was carried out.
func (e *DecodeError) Class() wire.Class { return wire.Fatal | wire.OutcomeUnknown }

// brokerClosed is ErrClosedByBroker with what is known about it.
type brokerClosed struct {
	hint string
	err  error // what the transport said, or ErrNoSASL
	any  bool  // something had been read of the broken-off answer
}

func (e *brokerClosed) Error() string   { return ErrClosedByBroker.Error() + " " + e.hint }
func (e *brokerClosed) Unwrap() []error { return []error{ErrClosedByBroker, e.err} }

// readError is the cause of a failed read of an answer's first 8 bytes, n of which came.
func (c *Conn) readError(n int, head [8]byte, err error) error {
	cause := c.transportError("read", err)
	var closed *brokerClosed
	if errors.As(cause, &closed) && n > 0 {
		closed.any = true
		if n >= 3 && isTLSAlert(head) || isHTTP(head) {
			return c.protocolError(head, "an answer that breaks off after its first bytes")
		}
	}
	return cause
}

// transportError says what an error of the transport means.
func (c *Conn) transportError(op string, err error) error {
	if errors.Is(err, wire.ErrVarint) || errors.Is(err, wire.ErrLength) {
		return &ProtocolError{What: err.Error()}
	}
	if !isHangup(err) {
		return fmt.Errorf("%s: %w", op, err)
	}
	waiting := c.InFlight()
	closed := &brokerClosed{err: err}
	switch {
	case waiting == 0:
		closed.hint = "while idle"
	case c.o.SASL == nil && c.answers.Load() == 0:
		closed.err = ErrNoSASL
		closed.hint = fmt.Sprintf("before the first answer (%d awaited): %v", waiting, ErrNoSASL)
	default:
		closed.hint = fmt.Sprintf("while %d answers were awaited", waiting)
	}
	return closed
}

// isHangup says whether the other side closed the transport.
func isHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// waitError is for waits that their context ended.
func waitError(ctx context.Context, addr, what string) error {
	return &WaitError{Addr: addr, What: what, Err: ctx.Err()}
}

// WaitError says that a context ended a wait before anything was sent.
type WaitError struct {
	Addr, What string
	Err        error // context.Canceled or context.DeadlineExceeded
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("broker %s: gave up waiting for %s: %v", e.Addr, e.What, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// Class for wire.Classify: nothing was sent.
func (e *WaitError) Class() wire.Class { return wire.DefinitelyRefused }
