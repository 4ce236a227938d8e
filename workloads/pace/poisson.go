package pace

import (
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
)

// poissonBlock is the number of messages whose gaps are drawn together.
const poissonBlock = 1024

// poissonMost bounds the table of block starts (8 bytes each): beyond 1.7·10¹⁰ messages blocks
// last their mean.
const poissonMost = 1 << 24

// poisson is a Poisson process that can be asked for any message.
//
// Messages come in blocks of 1024. A block's length is drawn from the Gamma distribution of
// the sum of 1024 exponential gaps; within it, 1024 exponentials are drawn and scaled to that
// length. Since the shares of exponentials in their sum do not depend on the sum, the gaps are
// exactly independent exponentials, yet a block can be made without those before it: only the
// starts of blocks are kept, 8 bytes for 1024 messages.
type poisson struct {
	rate, blockNs float64 // blockNs is the mean length of a block
	seed          uint64
	most          int64 // blocks in starts at most: poissonMost but in tests

	// starts[k] is the start of block k in ns; grown under mu, read without it. Elements are
	// never changed once published.
	starts atomic.Pointer[[]float64]
	mu     sync.Mutex
	// recent keeps made blocks at their number modulo its size. Producers of one run are close
	// to each other, so nearly every look-up finds its block.
	recent [64]atomic.Pointer[block]
}

// block holds where in it each of its messages stands, in 2⁻³² of its length. It is never
// changed once published.
type block struct {
	number int64
	shares [poissonBlock]uint32
}

// Poisson is random arrivals at the mean rate given: gaps are independent and exponential.
// The same seed gives the same arrivals. A rate without messages is as with Constant.
func Poisson(rate float64, seed uint64) Schedule {
	if !usable(rate) {
		return nothing{}
	}
	p := &poisson{rate: rate, blockNs: poissonBlock * 1e9 / rate, seed: seed, most: poissonMost}
	p.starts.Store(&[]float64{0})
	return p
}

func (p *poisson) Rate(int64) float64 { return p.rate }

func (p *poisson) Due(i int64) int64 {
	i = max(i, 0)
	number := i / poissonBlock
	return p.due(p.block(number), number, int(i%poissonBlock))
}

func (p *poisson) due(b *block, number int64, j int) int64 {
	start, end := p.start(number), p.start(number+1)
	ns := start + float64(b.shares[j])/(1<<32)*(end-start)
	if ns >= Never {
		return Never
	}
	return int64(ns)
}

func (p *poisson) Count(d int64) int64 {
	if d <= 0 {
		return 0
	}
	number := p.blockBefore(float64(d))
	b := p.block(number)
	n := sort.Search(poissonBlock, func(j int) bool { return p.due(b, number, j) >= d })
	return number*poissonBlock + int64(n)
}

// blockBefore is the last block that starts before d.
func (p *poisson) blockBefore(d float64) int64 {
	for {
		starts := *p.starts.Load()
		last := len(starts) - 1
		if starts[last] >= d {
			return int64(max(0, sort.SearchFloat64s(starts, d)-1))
		}
		if int64(last) >= p.most {
			return int64(last) + int64(math.Max(0, math.Ceil((d-starts[last])/p.blockNs)-1))
		}
		p.grow(int64(2 * len(starts)))
	}
}

// start is when block number begins.
func (p *poisson) start(number int64) float64 {
	starts := *p.starts.Load()
	if number < int64(len(starts)) {
		return starts[number]
	}
	if number > p.most {
		return p.start(p.most) + float64(number-p.most)*p.blockNs
	}
	return p.grow(number)[number]
}

// grow makes the table of starts reach block number at least.
func (p *poisson) grow(number int64) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	starts := *p.starts.Load()
	upTo := min(max(number, int64(len(starts))+63), p.most)
	for k := int64(len(starts)); k <= upTo; k++ {
		length := gamma(rand.New(rand.NewPCG(p.seed, uint64(k)|1<<63)), poissonBlock)
		starts = append(starts, starts[k-1]+length*1e9/p.rate)
	}
	p.starts.Store(&starts)
	return starts
}

func (p *poisson) block(number int64) *block {
	slot := &p.recent[number%int64(len(p.recent))]
	if b := slot.Load(); b != nil && b.number == number {
		return b
	}
	b := &block{number: number}
	random := rand.New(rand.NewPCG(p.seed, uint64(number)))
	var before [poissonBlock]float64
	sum := 0.0
	for j := range before {
		before[j] = sum
		sum += random.ExpFloat64()
	}
	for j, at := range before {
		b.shares[j] = uint32(min(at/sum*(1<<32), math.MaxUint32))
	}
	slot.Store(b)
	return b
}

// gamma draws from the Gamma distribution of shape k ≥ 1 and scale 1 (Marsaglia and Tsang, "A
// simple method for generating gamma variables", 2000).
func gamma(random *rand.Rand, k float64) float64 {
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
