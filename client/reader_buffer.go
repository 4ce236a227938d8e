package client

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// buffers are reused byte buffers in sizes of powers of two. Safe for concurrent use.
type buffers struct {
	held atomic.Int64 // bytes of the buffers in use

	mu   sync.Mutex
	idle [32][]*buffer // by log₂ of the size
	kept int           // bytes in idle
	most int           // bound of kept
}

// buffer is counted by its references; the last release gives it back.
type buffer struct {
	b    []byte
	refs atomic.Int32
	home *buffers
}

const smallestBuffer = 12 // 4 KiB

// get is a buffer of at least n bytes, with one reference.
func (p *buffers) get(n int) *buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), smallestBuffer)
	p.mu.Lock()
	var b *buffer
	if k := len(p.idle[class]); k > 0 {
		b = p.idle[class][k-1]
		p.idle[class][k-1] = nil
		p.idle[class] = p.idle[class][:k-1]
		p.kept -= cap(b.b)
	}
	p.mu.Unlock()
	if b == nil {
		b = &buffer{b: make([]byte, 1<<class), home: p}
	}
	b.refs.Store(1)
	p.held.Add(int64(cap(b.b)))
	return b
}

func (b *buffer) retain() { b.refs.Add(1) }

func (b *buffer) release() {
	if b == nil || b.refs.Add(-1) > 0 {
		return
	}
	p := b.home
	p.held.Add(-int64(cap(b.b)))
	// Decompressing may have replaced the memory by memory of another size.
	class := bits.Len(uint(cap(b.b))) - 1
	p.mu.Lock()
	defer p.mu.Unlock()
	if class >= smallestBuffer && class < len(p.idle) && p.kept+cap(b.b) <= p.most {
		p.idle[class] = append(p.idle[class], b)
		p.kept += cap(b.b)
	}
}

// replace makes the memory of a buffer in use another.
func (b *buffer) replace(by []byte) {
	b.home.held.Add(int64(cap(by) - cap(b.b)))
	b.b = by[:cap(by)]
}
