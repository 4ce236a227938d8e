package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// accounts counts messages that are accepted and not decided, in two epochs, so that a flush
// can wait for everything accepted before it without waiting for what comes after.
type accounts struct {
	epoch   atomic.Uint32
	open    [2]atomic.Int64
	waiting atomic.Int32

	flush chan struct{} // capacity 1, held by the flush under way: there are two epochs

	mu   sync.Mutex
	zero chan struct{} // made by who waits, closed and dropped when an epoch comes to nothing
}

// accepted counts n messages and returns the epoch to give to decided.
func (a *accounts) accepted(n int64) uint8 {
	e := uint8(a.epoch.Load() & 1)
	a.open[e].Add(n)
	return e
}

func (a *accounts) decided(epoch uint8, n int64) {
	if a.open[epoch].Add(-n) > 0 || a.waiting.Load() == 0 {
		return
	}
	a.mu.Lock()
	if a.zero != nil {
		close(a.zero)
		a.zero = nil
	}
	a.mu.Unlock()
}

func (a *accounts) total() int64 { return a.open[0].Load() + a.open[1].Load() }

// wait waits until everything accepted before it is decided, or ctx ends.
func (a *accounts) wait(ctx context.Context) error {
	select {
	case a.flush <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.flush }()
	a.waiting.Add(1)
	defer a.waiting.Add(-1)
	// What a flush cut short has left behind is in the epoch that takes nothing new now.
	current := a.epoch.Load() & 1
	if err := a.waitZero(ctx, 1-current); err != nil {
		return err
	}
	a.epoch.Add(1)
	return a.waitZero(ctx, current)
}

func (a *accounts) waitZero(ctx context.Context, epoch uint32) error {
	for {
		a.mu.Lock()
		if a.zero == nil {
			a.zero = make(chan struct{})
		}
		zero := a.zero
		a.mu.Unlock()
		if a.open[epoch].Load() <= 0 {
			return nil
		}
		select {
		case <-zero:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
