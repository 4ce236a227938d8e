package fault

import (
	"encoding/binary"
	"sync"
)

// exchange is one request whose answer has not come: what it takes to understand the answer.
type exchange struct {
	key, version int16
	corr         int32
}

// pending is the requests of one connection without an answer, oldest first. The goroutine that
// reads requests adds, the one that reads answers matches.
type pending struct {
	mu   sync.Mutex
	list []exchange
}

// mostPending bounds what is remembered of a connection: requests that are not answered
// (Produce without acks) stay until a later one is.
const mostPending = 4096

func (p *pending) add(x exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == mostPending {
		p.drop()
	}
	p.list = append(p.list, x)
}

// drop forgets the oldest Produce request, else the oldest of all.
func (p *pending) drop() {
	at := 0
	for i, x := range p.list {
		if x.key == 0 {
			at = i
			break
		}
	}
	p.list = append(p.list[:at], p.list[at+1:]...)
}

// match finds the request that an answer belongs to. Brokers answer in order, so that those
// before it will have no answer.
func (p *pending) match(corr int32) (x exchange, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.list {
		if x.corr == corr {
			p.list = append(p.list[:0], p.list[i+1:]...)
			return x, true
		}
	}
	return exchange{}, false
}

// splitter cuts a stream into frames: a length and as many bytes. It shows its user the first
// bytes of every frame together, head of them, or fewer where the frame is shorter; the rest in
// pieces as they come. A length that cannot be one (below 4) ends the splitting: what follows is
// one frame without an end. The zero value with head set is at the start of a stream.
type splitter struct {
	head  int // bytes to show together, the length's four included; at most 16
	first [16]byte
	have  int
	left  int64 // bytes of the frame not yet shown
	size  int64 // of the frame, its length included; 0 before it is known
	lost  bool  // not frames any more
}

// feed takes the next bytes of the stream. begin is called with the first bytes of a frame and
// its size, more with what follows. The slices are the splitter's or p's own.
func (s *splitter) feed(p []byte, begin func(head []byte, size int64), more func(p []byte, last bool)) {
	for len(p) > 0 {
		switch {
		case s.lost:
			more(p, false)
			return
		case s.left > 0:
			n := min(s.left, int64(len(p)))
			s.left -= n
			more(p[:n], s.left == 0)
			p = p[n:]
		default:
			p = p[s.collect(p, begin):]
		}
	}
}

// collect takes bytes of a frame's head and returns how many it took.
func (s *splitter) collect(p []byte, begin func([]byte, int64)) int {
	want := s.want()
	n := copy(s.first[s.have:want], p)
	if s.have += n; s.have < want {
		return n
	}
	if s.size == 0 {
		size := int64(int32(binary.BigEndian.Uint32(s.first[:4])))
		if s.size = size + 4; size < 4 {
			s.lost = true
			begin(s.first[:s.have], 1<<62)
			return n
		}
		if s.have < s.want() {
			return n
		}
	}
	s.left = s.size - int64(s.have)
	size, have := s.size, s.have
	s.size, s.have = 0, 0
	begin(s.first[:have], size)
	return n
}

// want is how many bytes to collect before anything more is known.
func (s *splitter) want() int {
	if s.size == 0 {
		return 4
	}
	return int(min(int64(s.head), s.size))
}
