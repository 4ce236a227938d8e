package conn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// Authenticator is one SASL mechanism with its credentials. It is safe for concurrent use by
// several connections, and never shows a secret when printed.
type Authenticator interface {
	// Mechanism is the name the broker knows it by, e.g. "SCRAM-SHA-512".
	Mechanism() string
	// Start begins one authentication and returns the first message to the broker.
	Start(ctx context.Context) (Exchange, []byte, error)
}

// Exchange is one authentication in progress; one goroutine uses it.
type Exchange interface {
	// Step takes the broker's message and returns ours. done: nothing more is to be sent. An error
	// means that the broker could not prove who it is, or broke the mechanism's rules.
	Step(challenge []byte) (answer []byte, done bool, err error)
	// Redact takes the secrets out of a text of the broker's.
	Redact(text string) string
}

// AuthError says that the broker did not accept who we are.
type AuthError struct {
	Addr, Mechanism string
	Text            string // secrets are taken out
	Err             error  // may be nil
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("broker %s: %s authentication failed: %s", e.Addr, e.Mechanism, e.Text)
}

func (e *AuthError) Unwrap() error { return e.Err }

// Class for wire.Classify: the same credentials fail again.
func (e *AuthError) Class() wire.Class { return wire.Fatal | wire.DefinitelyRefused }

// MechanismError says that a listener does not offer the mechanism.
type MechanismError struct {
	Addr, Mechanism string
	Offered         []string // what the broker offers; may be empty
}

func (e *MechanismError) Error() string {
	offered := "none"
	if len(e.Offered) > 0 {
		offered = strings.Join(e.Offered, ", ")
	}
	return fmt.Sprintf("broker %s does not offer the SASL mechanism %s on this listener; use one of: %s", e.Addr, e.Mechanism, offered)
}

// Class for wire.Classify.
func (e *MechanismError) Class() wire.Class { return wire.Fatal | wire.DefinitelyRefused }

// maxSteps bounds an exchange; no mechanism of ours takes more than three messages.
const maxSteps = 8

// login is an authentication that has begun: what it takes from elsewhere, such as a token, is
// there.
type login struct {
	exchange Exchange
	first    []byte
}

// begin starts an authentication. It may take its time, and nothing needs to wait for it.
func (c *Conn) begin(ctx context.Context) (login, error) {
	exchange, first, err := c.o.SASL.Start(ctx)
	if err != nil {
		return login{}, &OpenError{Addr: c.addr, Kind: ErrNoToken, Err: err}
	}
	return login{exchange, first}, nil
}

// authenticate runs the handshake and the mechanism, with the turn held, and returns how long the
// session lasts; 0: for ever.
func (c *Conn) authenticate(ctx context.Context, l login) (time.Duration, error) {
	if err := c.handshake(ctx); err != nil {
		return 0, err
	}
	version, err := c.Version(kmsg.NewPtrSASLAuthenticateRequest().Key())
	if err != nil {
		return 0, err
	}
	exchange, message := l.exchange, l.first
	for range maxSteps {
		resp, err := c.saslMessage(ctx, version, message)
		if err != nil {
			return 0, err
		}
		if resp.ErrorMessage != nil {
			*resp.ErrorMessage = exchange.Redact(*resp.ErrorMessage)
		}
		if err := wire.ErrorWith(resp.ErrorCode, resp.ErrorMessage); err != nil {
			return 0, c.authError(err.Error(), wire.ErrorFor(resp.ErrorCode))
		}
		var done bool
		if message, done, err = exchange.Step(resp.SASLAuthBytes); err != nil {
			return 0, c.authError(exchange.Redact(err.Error()), nil)
		}
		if done {
			return lifetime(resp.SessionLifetimeMillis), nil
		}
	}
	return 0, c.authError("the exchange does not end", nil)
}

func lifetime(millis int64) time.Duration {
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(min(max(millis, 0), most)) * time.Millisecond
}

// handshake names the mechanism.
func (c *Conn) handshake(ctx context.Context) error {
	req := kmsg.NewPtrSASLHandshakeRequest()
	version, err := c.Version(req.Key())
	if err != nil {
		return err
	}
	req.SetVersion(version)
	req.Mechanism = c.o.SASL.Mechanism()
	body, err := c.roundTrip(ctx, req)
	if err != nil {
		return err
	}
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.SetVersion(version)
	if err := c.decode(resp, body); err != nil {
		return err
	}
	switch err := wire.ErrorFor(resp.ErrorCode); {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrUnsupportedSASLMechanism):
		for i, m := range resp.SupportedMechanisms {
			resp.SupportedMechanisms[i] = wire.OneLine(m)
		}
		offered := resp.SupportedMechanisms[:min(len(resp.SupportedMechanisms), 20)]
		slices.Sort(offered)
		return &MechanismError{Addr: c.addr, Mechanism: req.Mechanism, Offered: offered}
	case errors.Is(err, wire.ErrIllegalSASLState):
		return c.authError("this listener does not ask for SASL: turn SASL off, or use the broker's SASL port", err)
	default:
		return c.authError(err.Error(), err)
	}
}

// saslMessage sends one message of the mechanism and returns the broker's.
func (c *Conn) saslMessage(ctx context.Context, version int16, message []byte) (*kmsg.SASLAuthenticateResponse, error) {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.SetVersion(version)
	req.SASLAuthBytes = message
	body, err := c.roundTrip(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.SetVersion(version)
	return resp, c.decode(resp, body)
}

func (c *Conn) authError(text string, err error) error {
	return &AuthError{Addr: c.addr, Mechanism: c.o.SASL.Mechanism(), Text: text, Err: err}
}
