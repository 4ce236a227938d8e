package conn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	return fmt.Sprintf("broker %s does not offer the SASL mechanism %s on this listener; it offers: %s", e.Addr, e.Mechanism, offered)
}

// Class for wire.Classify.
func (e *MechanismError) Class() wire.Class { return wire.Fatal | wire.DefinitelyRefused }

// maxSteps bounds an exchange; no mechanism of ours takes more than three messages.
const maxSteps = 8

// authenticate runs the handshake and the mechanism, with the turn held, and returns how long the
// session lasts; 0: for ever.
func (c *Conn) authenticate(ctx context.Context) (time.Duration, error) {
	if err := c.handshake(ctx); err != nil {
		return 0, err
	}
	version, err := c.Version(kmsg.NewPtrSASLAuthenticateRequest().Key())
	if err != nil {
		return 0, err
	}
	exchange, message, err := c.o.SASL.Start(ctx)
	if err != nil {
		return 0, c.authError(err.Error(), err)
	}
	for range maxSteps {
		resp, err := c.saslMessage(ctx, version, message)
		if err != nil {
			return 0, err
		}
		if err := wire.ErrorWith(resp.ErrorCode, resp.ErrorMessage); err != nil {
			return 0, c.authError(exchange.Redact(err.Error()), wire.ErrorFor(resp.ErrorCode))
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

// scheduleReauth sets the timer of the next authentication at 85 … 95 % of a session's lifetime
// (KIP-368), spread so that many connections do not come at once. 0: the session does not end.
func (c *Conn) scheduleReauth(life time.Duration) {
	if life <= 0 {
		return
	}
	after := reauthAfter(life, rand.Float64())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	// Owned by the Conn; fail stops the timer, and everything that reauthenticate waits for ends
	// with the connection. Nobody waits for it.
	c.reauth = time.AfterFunc(after, c.reauthenticate)
}

// reauthAfter: share is 0 … 1. A lifetime too short to work with does not make a busy loop.
func reauthAfter(life time.Duration, share float64) time.Duration {
	return max(time.Duration(float64(life)*(0.85+0.10*share)), 10*time.Millisecond)
}

// reauthenticate keeps others from writing, lets what is in flight be answered (the broker takes
// nothing but SASL requests in between), authenticates, and goes on. A failure closes the
// connection, as the broker would a little later.
func (c *Conn) reauthenticate() {
	if err := c.takeTurn(context.Background()); err != nil {
		return // closed
	}
	defer c.endTurn()
	if err := c.drain(); err != nil {
		return // closed
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.o.DialTimeout)
	defer cancel()
	life, err := c.authenticate(ctx)
	if err != nil {
		c.fail(c.saslError(err))
		return
	}
	c.o.Logger.Debug("authenticated again", "broker", c.addr, "lifetime", life)
	c.scheduleReauth(life)
}

// drain waits until nothing is in flight, with the turn held, so that nothing is added. It is
// bounded, since every request in flight has its deadline.
func (c *Conn) drain() error {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	if c.inFlightLocked() == 0 {
		c.mu.Unlock()
		return nil
	}
	drained := make(chan struct{})
	c.drained = drained
	c.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-c.done:
		return c.Err()
	}
}
