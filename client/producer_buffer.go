package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// bufferBound bounds what a producer holds from acceptance to outcome, in messages and in bytes.
// A run takes its share with one atomic addition; only who finds it full takes a lock.
type bufferBound struct {
	maxMessages, maxBytes int64 // 0: no bound

	held    atomic.Uint64 // messages in the upper bits, bytes in the lower ones
	waiters atomic.Int32

	mu   sync.Mutex
	room chan struct{} // made by who waits, closed and dropped when something is given back
}

// bytesBits is how many bits of held count bytes. What is tried and does not fit is in held for
// a moment too: hence limits far below what the bits could count.
const (
	bytesBits         = 40
	maxBufferMessages = 1 << (63 - bytesBits)
	maxBufferBytes    = 1 << (bytesBits - 1)
)

func packed(n, size int64) uint64 { return uint64(n)<<bytesBits + uint64(size) }

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
		if b.tryWaiting(n, size) {
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
	held := b.add(n, size)
	m, s := int64(held>>bytesBits), int64(held&(1<<bytesBits-1))
	if fits(m, n, b.maxMessages) && fits(s, size, b.maxBytes) {
		return true
	}
	b.release(n, size)
	return false
}

// tryWaiting is try for somebody who waits. It takes nothing that it would have to give back, which
// would wake everybody who waits, itself as well.
func (b *bufferBound) tryWaiting(n, size int64) bool {
	for {
		held := b.held.Load()
		after := held + packed(n, size)
		m, s := int64(after>>bytesBits), int64(after&(1<<bytesBits-1))
		if !fits(m, n, b.maxMessages) || !fits(s, size, b.maxBytes) {
			return false
		}
		if b.held.CompareAndSwap(held, after) {
			return true
		}
	}
}

// add takes without asking whether it fits, and returns what is held then.
func (b *bufferBound) add(n, size int64) uint64 { return b.held.Add(packed(n, size)) }

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
	b.held.Add(-packed(n, size))
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
