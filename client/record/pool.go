package record

import "sync"

// Pool shares compressors or decompressors. It keeps a bounded number of idle ones, which
// bounds the memory that codecs hold (a zstd encoder has some MiB), and leaves the rest to the
// garbage collector; how many are in use at a time is up to the callers. Safe for concurrent
// use; make one with [NewCompressorPool] or [NewDecompressorPool].
type Pool[T interface{ shrink() }] struct {
	create func() T
	mu     sync.Mutex
	idle   []T // last in, first out: the warmest
	most   int
}

// NewCompressorPool is a pool of compressors of one codec and level that keeps up to most idle.
// The error is that of [NewCompressor].
func NewCompressorPool(codec Codec, level, most int) (*Pool[*Compressor], error) {
	first, err := NewCompressor(codec, level)
	if err != nil {
		return nil, err
	}
	p := newPool(most, func() *Compressor {
		c, err := NewCompressor(codec, level)
		if err != nil {
			return &Compressor{codec: None} // cannot be: the same arguments made first
		}
		return c
	})
	p.Put(first)
	return p, nil
}

// NewDecompressorPool is a pool of decompressors that keeps up to most idle.
func NewDecompressorPool(most int) *Pool[*Decompressor] {
	return newPool(most, func() *Decompressor { return new(Decompressor) })
}

func newPool[T interface{ shrink() }](most int, create func() T) *Pool[T] {
	most = max(most, 0)
	return &Pool[T]{create: create, most: most, idle: make([]T, 0, most)}
}

// Get takes an idle one, or makes one. It never waits.
func (p *Pool[T]) Get() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return p.create()
	}
	c := p.idle[n-1]
	var none T
	p.idle[n-1] = none
	p.idle = p.idle[:n-1]
	return c
}

// Put gives one back. Whatever aliases its buffer, such as a batch it compressed, must not be
// used any more.
func (p *Pool[T]) Put(c T) {
	c.shrink()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < p.most {
		p.idle = append(p.idle, c)
	}
}

// Idle is how many are kept at the moment.
func (p *Pool[T]) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
