// Package payload makes the keys and values of messages: what message n holds depends on the
// seed and n alone, costs little more than a copy, and compresses as far as was asked.
package payload

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// Config says what messages hold. The zero value makes empty values and no keys.
type Config struct {
	// Size of every value in bytes, up to MaxSize.
	Size int
	// Compressibility is the share of a value that a codec takes away, from 0 to 0.95. More than
	// MaxCompressibility is not to be had and gives that. Over batches of values of 100
	// bytes or more gzip, lz4 and zstd meet it within 0.05
	// (snappy, which codes matches in pieces of 64 bytes, within 0.08).
	Compressibility float64
	// Stamped leaves the first StampSize bytes of every value for a stamp and takes its own
	// compressibility into account. It needs Size ≥ StampSize.
	Stamped bool
	Keys    Keys
	Seed    uint64
}

// MaxSize bounds a value: 1 GiB.
const MaxSize = 1 << 30

const (
	distinctBytes = 8   // random bytes of a value without a stamp at least: they make messages differ
	matchBytes    = 4   // what a codec spends on a value's compressible part
	plainStamp    = 15  // what codecs make of a stamp that is not scrambled: 10 (gzip) to 20 (lz4)
	plainFrom     = 256 // bytes of a value from which that spread is small enough
	poolBytes     = 256 << 10
)

// MaxCompressibility is the most that values of a size can be asked to compress, since a few
// bytes must differ from message to message.
func MaxCompressibility(size int, stamped bool) float64 {
	if size <= 0 {
		return 0
	}
	fixed := matchBytes + distinctBytes
	switch {
	case stamped && size < plainFrom:
		fixed = matchBytes + StampSize
	case stamped:
		fixed = matchBytes + plainStamp
	}
	const tolerance = 0.04
	return min(0.95, max(0, 1-float64(fixed)/float64(size)+tolerance))
}

// Source makes keys and values. It is immutable and safe for concurrent use.
type Source struct {
	config Config
	seed   uint64
	// A value is room for the stamp, then random bytes, then filler to the end.
	stamp, random int
	scramble      bool
	// pool is random words; a message takes a stretch of it, changed by a word of its own.
	pool   []uint64
	filler []byte
	keys   keys
}

// New checks the configuration and prepares the random pool.
func New(c Config) (*Source, error) {
	switch {
	case c.Size < 0 || c.Size > MaxSize:
		return nil, fmt.Errorf("payload: size %d is not between 0 and %d bytes", c.Size, MaxSize)
	case !(c.Compressibility >= 0 && c.Compressibility <= 0.95):
		return nil, fmt.Errorf("payload: compressibility %v is not between 0 and 0.95", c.Compressibility)
	case c.Stamped && c.Size < StampSize:
		return nil, fmt.Errorf("payload: a value of %d bytes has no room for a stamp of %d", c.Size, StampSize)
	}
	s := &Source{config: c, seed: mix(c.Seed)}
	var err error
	if s.keys, err = newKeys(c.Keys, c.Seed); err != nil {
		return nil, err
	}
	s.layOut()
	random := rand.New(rand.NewPCG(c.Seed, 0x6b62656e6368))
	s.pool = make([]uint64, min(poolBytes, nextPower(s.random+8))/8)
	for i := range s.pool {
		s.pool[i] = random.Uint64()
	}
	s.filler = make([]byte, c.Size-s.stamp-s.random)
	for i := range s.filler {
		s.filler[i] = 'k'
	}
	return s, nil
}

// layOut decides how many bytes are random, so that with the stamp and with what codecs spend
// the share asked for is left.
func (s *Source) layOut() {
	c := s.config
	room := c.Size
	budget := int(math.Round((1 - c.Compressibility) * float64(c.Size)))
	if c.Compressibility > 0 {
		budget -= matchBytes
	}
	least := distinctBytes
	if c.Stamped {
		s.stamp, least = StampSize, 0
		room -= StampSize
		s.scramble = budget >= StampSize || c.Size < plainFrom
		if s.scramble {
			budget -= StampSize
		} else {
			budget -= plainStamp
		}
	}
	s.random = min(max(budget, least), room)
}

func nextPower(n int) int {
	p := 8
	for p < n && p < poolBytes {
		p *= 2
	}
	return p
}

// Size is the size of every value.
func (s *Source) Size() int { return s.config.Size }

// Value fills dst with the value of message n and returns it, dst[:Size]; a dst with too
// little capacity is replaced. Values of different messages differ, as far as their size
// allows (with Stamped, by their stamps at least). With Stamped the first StampSize bytes are
// left as they are, for Stamp or PutStamp.
func (s *Source) Value(dst []byte, n int64) []byte {
	if cap(dst) < s.config.Size {
		dst = make([]byte, s.config.Size)
	}
	dst = dst[:s.config.Size]
	random := dst[s.stamp : s.stamp+s.random]
	// mix is a bijection, hence the first word of every message is its own.
	word := mix(uint64(n) ^ s.seed)
	s.fill(random, word)
	copy(dst[s.stamp+s.random:], s.filler)
	return dst
}

// fill writes pool words changed by the message's word, so that two messages that take the
// same stretch have nothing a codec could find.
func (s *Source) fill(dst []byte, word uint64) {
	if len(dst) < 8 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], word)
		copy(dst, last[:])
		return
	}
	binary.LittleEndian.PutUint64(dst, word)
	dst = dst[8:]
	at := int(word % uint64(len(s.pool)))
	for len(dst) >= 8 {
		words := s.pool[at:]
		if most := len(dst) / 8; len(words) > most {
			words = words[:most]
		}
		xorWords(dst, words, word)
		dst = dst[8*len(words):]
		word, at = mix(word), 0
	}
	if len(dst) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], mix(^word))
		copy(dst, last[:])
	}
}

// xorWords writes words ^ word; dst has room for them.
func xorWords(dst []byte, words []uint64, word uint64) {
	for len(words) >= 4 && len(dst) >= 32 {
		binary.LittleEndian.PutUint64(dst[0:8], words[0]^word)
		binary.LittleEndian.PutUint64(dst[8:16], words[1]^word)
		binary.LittleEndian.PutUint64(dst[16:24], words[2]^word)
		binary.LittleEndian.PutUint64(dst[24:32], words[3]^word)
		words, dst = words[4:], dst[32:]
	}
	for i, w := range words {
		binary.LittleEndian.PutUint64(dst[8*i:], w^word)
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
