package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// bufferBound bounds what a producer holds from acceptance to outcome, in messages and in bytes.
// A run takes its share with two atomic additions; only who finds it full takes a lock.
type bufferBound struct {
	maxMessages, maxBytes int64 // 0: no bound

	messages, bytes atomic.Int64
	waiters         atomic.Int32

	mu   sync.Mutex
	room chan struct{} // made by who waits, closed and dropped when something is given back
}

// acquire takes n messages of size bytes together, waiting until they fit, ctx ends or abort is
// closed. More than the whole bound fits while nothing else is held. It says whether it waited.
func (b *bufferBound) acquire(ctx context.Context, abort <-chan struct{}, n, size int64) (waited bool, err error) {
	if b.try(n, size) {
		return false, nil
	}
	if inCallback() {
		return false, ErrBufferFull
	}
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	for {
		room := b.waitForRoom()
		if b.try(n, size) {
			return true, nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return true, ctx.Err()
		case <-abort:
			return true, ErrClosed
		}
	}
}

func (b *bufferBound) try(n, size int64) bool {
	m, s := b.messages.Add(n), b.bytes.Add(size)
	if fits(m, n, b.maxMessages) && fits(s, size, b.maxBytes) {
		return true
	}
	b.release(n, size)
	return false
}

// fits: the total after adding own is within the bound, or own is all there is.
func fits(total, own, bound int64) bool { return bound == 0 || total <= bound || total == own }

func (b *bufferBound) waitForRoom() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// release gives back what acquire took.
func (b *bufferBound) release(n, size int64) {
	b.messages.Add(-n)
	b.bytes.Add(-size)
	if b.waiters.Load() == 0 {
		return
	}
	b.mu.Lock()
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
	b.mu.Unlock()
}
