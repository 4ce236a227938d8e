package payload

import (
	"fmt"
	"math/bits"
)

// Kinds of keys.
const (
	KeysNone       = "none"
	KeysSequential = "sequential" // message n has key n mod N
	KeysUniform    = "uniform"    // every key is as likely
	KeysZipf       = "zipf"       // key k (from 0) has likelihood ∝ (1+k)^−Skew
)

// Keys says what keys messages have. The zero value is none.
type Keys struct {
	Kind string
	// Size is bytes of every key: decimal digits, so N keys need at least log₁₀ N; 0 gives each as
	// many digits as its number has.
	Size int
	N    int64   // number of different keys
	Skew float64 // zipf only, above 0
	// Lines are the keys themselves, if given, in place of Size and N.
	Lines [][]byte
}

// MaxKeySize bounds a key.
const MaxKeySize = 1 << 16

type keys struct {
	Keys
	seed uint64
	zipf zipf
}

// CheckKeys reports what is wrong with a configuration of keys, as New does.
func CheckKeys(k Keys) error {
	switch k.Kind {
	case "", KeysNone:
		return nil
	case KeysSequential, KeysUniform, KeysZipf:
	default:
		return fmt.Errorf("%q is no kind of keys; there are none, sequential, uniform and zipf", k.Kind)
	}
	if k.Kind == KeysZipf && !(k.Skew > 0 && k.Skew <= 100) {
		return fmt.Errorf("the skew of zipf keys must be above 0 (and 100 at most), not %v", k.Skew)
	}
	if len(k.Lines) > 0 {
		for i, line := range k.Lines {
			if len(line) > MaxKeySize {
				return fmt.Errorf("key %d has %d bytes, %d is the most", i+1, len(line), MaxKeySize)
			}
		}
		return nil
	}
	switch {
	case k.N < 1:
		return fmt.Errorf("the number of keys must be 1 or more, not %d", k.N)
	case k.Size < 0 || k.Size > MaxKeySize:
		return fmt.Errorf("key size %d is not between 0 and %d bytes", k.Size, MaxKeySize)
	case k.Size > 0 && k.Size < digits(k.N-1):
		return fmt.Errorf("%d keys need %d bytes each, not %d", k.N, digits(k.N-1), k.Size)
	}
	return nil
}

func newKeys(k Keys, seed uint64) (keys, error) {
	out := keys{Keys: k, seed: mix(seed ^ 0x6b657973)}
	if err := CheckKeys(k); err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	if k.Kind == "" {
		out.Kind = KeysNone
	}
	if len(k.Lines) > 0 {
		out.N = int64(len(k.Lines))
	}
	if k.Kind == KeysZipf {
		out.zipf = newZipf(out.N, k.Skew)
	}
	return out, nil
}

// bounds are the lengths of keys.
func (k *keys) bounds() Bounds {
	switch {
	case k.Kind == KeysNone:
		return Bounds{}
	case len(k.Lines) > 0:
		return linesBounds(k.Lines)
	case k.Size > 0:
		return exactly(k.Size)
	}
	return Bounds{Min: 1, Max: digits(k.N - 1), Mean: meanDigits(k.N)}
}

// digits is the number of decimal digits of n ≥ 0.
func digits(n int64) int {
	count := 1
	for ; n > 9; n /= 10 {
		count++
	}
	return count
}

// meanDigits is the mean number of digits of 0 … n−1.
func meanDigits(n int64) float64 {
	sum, from := 0.0, int64(0)
	for length, to := 1, int64(10); from < n; length++ {
		sum += float64(length) * float64(min(to, n)-from)
		from = to
		if to > n/10 {
			to = n
			continue
		}
		to *= 10
	}
	return sum / float64(n)
}

// Key fills dst with the key of message n and returns it; nil when messages have no keys. A
// dst with too little capacity is replaced. A key of Lines is that line itself, which must not be
// changed.
func (s *Source) Key(dst []byte, n int64) []byte {
	k := &s.keys
	if k.Kind == KeysNone {
		return nil
	}
	if len(k.Lines) > 0 {
		return k.Lines[k.index(n)]
	}
	index := uint64(k.index(n))
	size := k.Size
	if size == 0 {
		size = digits(int64(index))
	}
	if cap(dst) < size {
		dst = make([]byte, size)
	}
	dst = dst[:size]
	i := len(dst) - 1
	for ; i >= 0 && index > 0; i-- {
		dst[i] = '0' + byte(index%10)
		index /= 10
	}
	for ; i >= 0; i-- {
		dst[i] = '0'
	}
	return dst
}

// KeyIndex is which of the N keys (from 0) message n has; -1 without keys. Of zipf keys, 0 is
// the most frequent.
func (s *Source) KeyIndex(n int64) int64 {
	if s.keys.Kind == KeysNone {
		return -1
	}
	return s.keys.index(n)
}

func (k *keys) index(n int64) int64 {
	switch k.Kind {
	case KeysSequential:
		return int64(uint64(n) % uint64(k.N))
	case KeysUniform:
		hi, _ := bits.Mul64(mix(uint64(n)^k.seed), uint64(k.N))
		return int64(hi)
	}
	return k.zipf.draw(mix(uint64(n) ^ k.seed))
}
