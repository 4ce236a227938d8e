// Package payload makes the keys and values of messages: what message n holds depends on the
// seed and n alone, costs little more than a copy, and compresses as far as was asked.
package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// Kinds of values.
const (
	KindRandom   = "random"   // random bytes and filler, of any size and compressibility
	KindLines    = "lines"    // Config.Lines
	KindTemplate = "template" // Config.Template
	KindJSON     = "json"     // Config.Fields
)

// Orders of lines.
const (
	OrderSequence = "sequence" // message n has line n mod their number
	OrderRandom   = "random"   // every line is as likely
)

// Config says what messages hold. The zero value makes empty values and no keys.
type Config struct {
	// Kind is what values are made of; empty: KindRandom.
	Kind string
	// Size of every random value in bytes, up to MaxSize; with Sizes of kind normal their mean, with
	// the other distributions not used.
	Size  int
	Sizes Sizes
	// Compressibility is the share of a random value that a codec takes away, from 0 to 0.95. More than
	// MaxCompressibility is not to be had and gives that. Over batches of values of 100
	// bytes or more gzip, lz4 and zstd meet it within 0.05
	// (snappy, which codes matches in pieces of 64 bytes, within 0.08).
	Compressibility float64
	// Stamped leaves the first StampSize bytes of every value for a stamp and takes its own
	// compressibility into account. It needs random values of StampSize or more.
	Stamped bool
	// Lines are the values of KindLines, which Order (empty: OrderSequence) picks from.
	Lines [][]byte
	Order string
	// Template is the text of KindTemplate, with generators in {{ }}: what each writes is said by the key payload.template.
	Template string
	// Fields are those of KindJSON: a name, in which dots lead into objects, and a generator.
	Fields map[string]string
	// Headers are the names and templates of record headers that every message has, whatever its kind.
	Headers map[string]string
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

// Source makes keys, values and headers. It is immutable and safe for concurrent use.
type Source struct {
	config Config
	seed   uint64
	bounds Bounds
	sizes  *sizes // nil: every random value has Config.Size
	// A random value is room for the stamp, then random bytes (random is how many when all have the
	// same size), then filler to the end.
	stamp, random int
	scramble      bool
	// pool is random words; a message takes a stretch of it, changed by a word of its own.
	pool    []uint64
	filler  []byte
	program *program // of KindTemplate and KindJSON
	headers []header
	keys    keys
}

// New checks the configuration and prepares what messages are made from.
func New(c Config) (*Source, error) {
	s, err := measured(c)
	if err != nil {
		return nil, err
	}
	if c.Kind == KindRandom || c.Kind == "" {
		s.fillPool()
	}
	return s, nil
}

// Measure is how long values and keys are. It costs less than New and finds the same errors.
func Measure(c Config) (values, keys Bounds, err error) {
	s, err := measured(c)
	if err != nil {
		return Bounds{}, Bounds{}, err
	}
	return s.bounds, s.keys.bounds(), nil
}

// measured is a source that knows the lengths of everything, without what random values are from.
func measured(c Config) (*Source, error) {
	s := &Source{config: c, seed: mix(c.Seed)}
	var err error
	if s.keys, err = newKeys(c.Keys, c.Seed); err != nil {
		return nil, err
	}
	if s.headers, err = newHeaders(c.Headers, c.Seed); err != nil {
		return nil, fmt.Errorf("payload: headers: %w", err)
	}
	if err := s.values(); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return s, nil
}

// values prepares the kind of values asked for.
func (s *Source) values() (err error) {
	c := &s.config
	switch c.Kind {
	case "", KindRandom:
		return s.randomValues()
	case KindLines:
		switch {
		case len(c.Lines) == 0:
			return errors.New("there are no lines to send")
		case c.Order != "" && c.Order != OrderSequence && c.Order != OrderRandom:
			return fmt.Errorf("%q is no order of lines; there are sequence and random", c.Order)
		}
		s.bounds = linesBounds(c.Lines)
	case KindTemplate:
		s.program, err = compile(c.Template)
	case KindJSON:
		s.program, err = compileJSON(c.Fields)
	default:
		return fmt.Errorf("%q is no kind of values; there are random, lines, template and json", c.Kind)
	}
	switch {
	case err != nil:
		return err
	case c.Stamped:
		return fmt.Errorf("values of kind %s have no room for a stamp", c.Kind)
	case s.program != nil:
		s.program.seed, s.bounds = mix(c.Seed^0x74656d70), s.program.bounds
	}
	return nil
}

// randomValues checks and lays out random values.
func (s *Source) randomValues() error {
	c := &s.config
	if c.Size < 0 || c.Size > MaxSize {
		return fmt.Errorf("size %d is not between 0 and %d bytes", c.Size, MaxSize)
	}
	if !(c.Compressibility >= 0 && c.Compressibility <= 0.95) {
		return fmt.Errorf("compressibility %v is not between 0 and 0.95", c.Compressibility)
	}
	if err := CheckSizes(c.Sizes, c.Size); err != nil {
		return err
	}
	s.bounds = exactly(c.Size)
	if s.sizes = newSizes(c.Sizes, c.Size, c.Seed); s.sizes != nil {
		s.bounds = s.sizes.bounds()
	}
	if c.Stamped {
		if s.bounds.Min < StampSize {
			return fmt.Errorf("a value of %d bytes has no room for a stamp of %d", s.bounds.Min, StampSize)
		}
		s.stamp = StampSize
		s.scramble = s.bounds.Min < plainFrom || s.budget(s.bounds.Min) >= StampSize
	}
	s.random = s.randomOf(s.bounds.Max)
	return nil
}

// budget is how many bytes of a value must not compress.
func (s *Source) budget(size int) int {
	c := &s.config
	budget := int(math.Round((1 - c.Compressibility) * float64(size)))
	if c.Compressibility > 0 {
		budget -= matchBytes
	}
	return budget
}

// randomOf is how many bytes of a value are random, so that with the stamp and with what codecs
// spend the share asked for is left.
func (s *Source) randomOf(size int) int {
	budget, least := s.budget(size), distinctBytes
	if s.stamp > 0 {
		least = 0
		if s.scramble {
			budget -= StampSize
		} else {
			budget -= plainStamp
		}
	}
	return min(max(budget, least), size-s.stamp)
}

func (s *Source) fillPool() {
	random := rand.New(rand.NewPCG(s.config.Seed, 0x6b62656e6368))
	s.pool = make([]uint64, min(poolBytes, nextPower(s.random+8))/8)
	for i := range s.pool {
		s.pool[i] = random.Uint64()
	}
	// No value has more filler than the largest: what is added to a size is shared out in proportion.
	s.filler = make([]byte, s.bounds.Max-s.stamp-s.random+1)
	for i := range s.filler {
		s.filler[i] = 'k'
	}
}

func nextPower(n int) int {
	p := 8
	for p < n && p < poolBytes {
		p *= 2
	}
	return p
}

// Bounds are the lengths of values.
func (s *Source) Bounds() Bounds { return s.bounds }

// KeyBounds are the lengths of keys.
func (s *Source) KeyBounds() Bounds { return s.keys.bounds() }

// Room is the capacity that Value and Key need of the slices they are given so that they do not
// allocate: 0 for lines, which are handed over as they are.
func (s *Source) Room() (value, key int) {
	if s.config.Kind != KindLines {
		value = s.bounds.Max
	}
	if len(s.config.Keys.Lines) == 0 {
		key = s.keys.bounds().Max
	}
	return value, key
}

// Value fills dst with the value of message n and returns it, as long as that is; a dst with too
// little capacity is replaced. Random values of different messages differ, as far as their size
// allows (with Stamped, by their stamps at least). With Stamped the first StampSize bytes are
// left as they are, for Stamp or PutStamp. A value of Lines is that line itself, which must not be
// changed.
func (s *Source) Value(dst []byte, n int64) []byte {
	if s.program != nil {
		return s.program.append(dst[:0], n)
	}
	if s.config.Kind == KindLines {
		return s.line(n)
	}
	size, random := s.config.Size, s.random
	if s.sizes != nil {
		size = s.sizes.at(n)
		random = s.randomOf(size)
	}
	if cap(dst) < size {
		dst = make([]byte, size)
	}
	dst = dst[:size]
	// mix is a bijection, hence the first word of every message is its own.
	word := mix(uint64(n) ^ s.seed)
	s.fill(dst[s.stamp:s.stamp+random], word)
	copy(dst[s.stamp+random:], s.filler)
	return dst
}

// line is that of message n.
func (s *Source) line(n int64) []byte {
	lines := s.config.Lines
	if s.config.Order == OrderRandom {
		i, _ := bits.Mul64(mix(uint64(n)^s.seed), uint64(len(lines)))
		return lines[i]
	}
	return lines[uint64(n)%uint64(len(lines))]
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
