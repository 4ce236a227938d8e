package client

import (
	"time"

	"github.com/kbench/kbench/client/internal/wire"
)

// lockout keeps a broker that does not let us in from being asked again and again: what only a
// change of the configuration can cure (a wrong password, a certificate that is not trusted) is
// the same at the next try, while logins are dear and accounts get locked. The zero value is that
// of a broker that has refused nothing.
type lockout struct {
	err   error
	until time.Time
	wait  time.Duration
}

// Bounds of the wait after a refusal; it doubles from the first to the second.
const (
	firstRefusal = time.Second
	mostRefusal  = 30 * time.Second
)

// note takes in how a try to connect ended, nil for well.
func (r *lockout) note(err error, now time.Time) {
	if !wire.Classify(err).Has(wire.Fatal) {
		*r = lockout{}
		return
	}
	r.wait = min(max(2*r.wait, firstRefusal), mostRefusal)
	r.err, r.until = err, now.Add(r.wait)
}

// at is the refusal that still counts; nil: try.
func (r *lockout) at(now time.Time) error {
	if r.err == nil || !now.Before(r.until) {
		return nil
	}
	return r.err
}

func (b *Broker) refusedNow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refused.at(time.Now()); err != nil {
		return &addressError{b.addr, err}
	}
	return nil
}

func (b *Broker) noteOpened(err error) {
	if b.life.Err() != nil {
		return // given up, not refused
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused.note(err, time.Now())
}
