package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// Open connects to the broker at addr (host:port): dial, TLS, ApiVersions, SASL, all within
// DialTimeout and ctx. Its errors are *OpenError, *AuthError, *MechanismError or *VersionError;
// each says what to do, and none holds a secret.
func Open(ctx context.Context, addr string, o Options) (*Conn, error) {
	o = o.withDefaults()
	if o.TLS != nil && o.TLS.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, &OpenError{Addr: addr, Kind: ErrAddress, Err: err}
		}
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = host
	}
	bounded, cancel := context.WithTimeoutCause(ctx, o.DialTimeout, errDialTimeout)
	defer cancel()
	c, err := open(bounded, addr, o)
	if err != nil {
		if ctx.Err() != nil { // the caller's own wish, not the broker's fault
			return nil, &OpenError{Addr: addr, Kind: ErrCancelled, Err: ctx.Err()}
		}
		return nil, err
	}
	o.Logger.Debug("connected", "broker", addr, "tls", o.TLS != nil, "sasl", o.SASL != nil)
	return c, nil
}

var errDialTimeout = fmt.Errorf("dial timeout: %w", context.DeadlineExceeded)

func open(ctx context.Context, addr string, o Options) (*Conn, error) {
	raw, err := o.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, dialError(addr, o.DialTimeout, err)
	}
	nc := raw
	if o.TLS != nil {
		t := tls.Client(raw, o.TLS)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, tlsError(addr, o.DialTimeout, err)
		}
		nc = t
	}
	c := newConn(addr, raw, nc, o)
	if err := c.setUp(ctx); err != nil {
		c.Close(err)
		return nil, err
	}
	return c, nil
}

// setUp holds the turn: nothing else is written before the broker knows who we are.
func (c *Conn) setUp(ctx context.Context) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer c.endTurn()
	if err := c.askVersions(ctx); err != nil {
		return c.firstError(err)
	}
	if c.o.SASL == nil {
		return nil
	}
	login, err := c.begin(ctx)
	if err != nil {
		return err
	}
	lifetime, err := c.authenticate(ctx, login)
	if err != nil {
		return c.saslError(err)
	}
	c.scheduleReauth(lifetime)
	return nil
}

// saslError gives errors of the authentication that are not its own a frame.
func (c *Conn) saslError(err error) error {
	var auth *AuthError
	var mechanism *MechanismError
	var opened *OpenError
	if errors.As(err, &auth) || errors.As(err, &mechanism) || errors.As(err, &opened) {
		return err
	}
	if errors.Is(err, ErrClosedByBroker) {
		return &OpenError{Addr: c.addr, Kind: ErrAuthHangup}
	}
	return c.firstError(err)
}
