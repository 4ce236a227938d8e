package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// Kinds of OpenError, for errors.Is. Their text says what is wrong and what to do.
var (
	ErrAddress  = errors.New("the address is not usable: give host:port with a name that resolves")
	ErrRefused  = errors.New("connection refused: no broker listens there; check host, port and advertised.listeners")
	ErrDial     = errors.New("the connection could not be made; check host, port and network")
	ErrDialSlow = errors.New("no connection in time: a firewall, a wrong address or an overloaded broker; check them or raise the dial timeout")
	ErrNoAnswer = errors.New("connected, but no answer in time: not a Kafka broker, a TLS port that plaintext was sent to, or an overloaded broker")
	// ErrTLSNoAnswer: a plaintext listener may take a TLS greeting for the beginning of a long request.
	ErrTLSNoAnswer = errors.New("no answer to the TLS handshake in time: perhaps not a TLS port (turn TLS off, or use the broker's TLS port), or an overloaded broker")
	ErrCancelled   = errors.New("connecting was given up")
	// ErrTLSPort: plaintext was sent to a TLS listener.
	ErrTLSPort = errors.New("this looks like a TLS port: configure TLS, or use the broker's plaintext port")
	// ErrClosedAtOnce: closed before the first answer; a TLS listener does that too.
	ErrClosedAtOnce = errors.New("the broker closed the connection before its first answer: it is stopping, or the port expects TLS or something else than Kafka")
	// ErrClosedAfterTLS is ErrClosedAtOnce on a TLS connection: with TLS 1.3 a broker that misses a
	// client certificate says so after the handshake, and its words may be lost.
	ErrClosedAfterTLS = errors.New("the broker closed the connection right after the TLS handshake: it asks for a client certificate or does not trust the one given, or it is stopping")
	// ErrPlaintextPort: TLS was spoken to a listener that does not.
	ErrPlaintextPort = errors.New("this does not look like a TLS port: turn TLS off, or use the broker's TLS port")
	// ErrTLSHangup: closed during the handshake, as Kafka's plaintext listeners do.
	ErrTLSHangup = errors.New("the broker closed the connection during the TLS handshake: most likely this is not a TLS port (turn TLS off, or use the broker's TLS port), or it is stopping")
	ErrNotKafka  = errors.New("this is not a Kafka broker: its answer is not of the Kafka protocol; check host and port")
	// ErrCertificate: we do not trust the broker's certificate.
	ErrCertificate = errors.New("the broker's certificate is not trusted: add the CA that signed it to the trust store")
	// ErrCertificateName: it was made for another broker, or the broker is called by another name.
	ErrCertificateName = errors.New("the broker's certificate is for other names: connect by a name that it holds, or have it made for this one")
	// ErrCertificateDate: it is too old or too young.
	ErrCertificateDate = errors.New("the broker's certificate is not valid at this time: renew it, or set this machine's clock right")
	// ErrClientCertificate: the broker does not accept ours, or wants one.
	ErrClientCertificate = errors.New("the broker refused the TLS handshake: it may ask for a client certificate, or not trust the one given")
	ErrTLS               = errors.New("the TLS handshake failed")
	// ErrNoToken: the source of tokens failed, which may pass.
	ErrNoToken = errors.New("no token for OAUTHBEARER could be had; check where it comes from")
	// ErrAuthHangup: Kafka answers when it refuses credentials; others may close without a word.
	ErrAuthHangup = errors.New("the broker closed the connection during authentication: user, password or token may be wrong (though Kafka would say so), or it is stopping")
	ErrSetUp      = errors.New("the broker did not complete the set-up of the connection")
)

// OpenError says why a connection could not be opened.
type OpenError struct {
	Addr string
	Kind error // one of the kinds above, or ErrNotKafka, …
	Err  error // the detail
}

func (e *OpenError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("broker %s: %v", e.Addr, e.Kind)
	}
	return fmt.Sprintf("broker %s: %v (%v)", e.Addr, e.Kind, e.Err)
}

func (e *OpenError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// fatalKinds are the kinds that only a change of the configuration can cure.
var fatalKinds = []error{
	ErrAddress, ErrTLSPort, ErrPlaintextPort, ErrNotKafka, ErrClientCertificate,
	ErrCertificate, ErrCertificateName, ErrCertificateDate,
}

// Class for wire.Classify. Nothing of the caller's was sent. What a broker that starts, stops or
// is overloaded can cause is retriable; what only a change of the configuration can cure is fatal.
func (e *OpenError) Class() wire.Class {
	kind := e.Kind // always one of the sentinels themselves
	switch {
	case errors.Is(kind, ErrCancelled):
		return wire.DefinitelyRefused
	case slices.Contains(fatalKinds, kind):
		return wire.Fatal | wire.DefinitelyRefused
	}
	return wire.Retriable | wire.RefreshMetadata | wire.DefinitelyRefused
}

func dialError(addr string, timeout time.Duration, err error) error {
	kind := ErrDial
	var dns *net.DNSError
	var address *net.AddrError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		kind = ErrRefused
	case isTimeout(err):
		kind = ErrDialSlow
		err = fmt.Errorf("after %v: %w", timeout, err)
	case errors.As(err, &dns) && dns.IsNotFound, errors.As(err, &address):
		kind = ErrAddress
	}
	return &OpenError{Addr: addr, Kind: kind, Err: err}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func tlsError(addr string, timeout time.Duration, err error) error {
	kind := ErrTLS
	var record tls.RecordHeaderError
	switch {
	case certificateKind(err) != nil:
		kind = certificateKind(err)
	case isAlert(err):
		kind = ErrClientCertificate
	case errors.As(err, &record):
		kind = ErrPlaintextPort
	case isHangup(err):
		kind = ErrTLSHangup
		err = nil // the kind says it all
	case isTimeout(err):
		kind = ErrTLSNoAnswer
		err = fmt.Errorf("after %v: %w", timeout, err)
	}
	return &OpenError{Addr: addr, Kind: kind, Err: err}
}

// certificateKind says what we dislike about the broker's certificate; nil: it is not about that.
func certificateKind(err error) error {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &host):
		return ErrCertificateName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ErrCertificateDate
	case errors.As(err, &verify), errors.As(err, &authority), errors.As(err, &invalid):
		return ErrCertificate
	}
	return nil
}

// isAlert says whether the peer sent a TLS alert. In TLS 1.3 that of a missing client certificate
// comes only after the handshake, with the first read.
func isAlert(err error) bool {
	var alert tls.AlertError
	var op *net.OpError
	return errors.As(err, &alert) || errors.As(err, &op) && op.Op == "remote error"
}

// firstError says what it means when the first exchanges on a connection fail.
func (c *Conn) firstError(err error) error {
	var opened *OpenError
	var version *wire.VersionError
	if errors.As(err, &opened) || errors.As(err, &version) {
		return err
	}
	kind := ErrSetUp
	var protocol *ProtocolError
	var decode *DecodeError
	switch {
	case errors.As(err, &protocol):
		kind = ErrNotKafka
		if isTLSAlert(protocol.First) {
			kind = ErrTLSPort
			err = nil // the kind says it all
		}
	case errors.As(err, &decode):
		kind = ErrNotKafka
	case isAlert(err):
		kind = ErrClientCertificate
	case errors.Is(err, ErrClosedByBroker):
		kind = ErrClosedAtOnce
		if c.o.TLS != nil {
			kind = ErrClosedAfterTLS
		}
		err = nil // the kind says it all
	case errors.Is(err, ErrTimeout), isTimeout(err):
		kind = ErrNoAnswer
	}
	var closed *ClosedError
	if errors.As(err, &closed) {
		err = closed.Cause // the address is said already
	}
	return &OpenError{Addr: c.addr, Kind: kind, Err: err}
}

// isTLSAlert says whether bytes begin a TLS alert record (RFC 8446, 5.1 and 6).
func isTLSAlert(b [8]byte) bool { return b[0] == 0x15 && b[1] == 0x03 && b[2] <= 0x04 }

func isHTTP(b [8]byte) bool { return string(b[:4]) == "HTTP" }
