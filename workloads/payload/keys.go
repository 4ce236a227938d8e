package payload

import (
	"fmt"
	"math"
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
	Size int     // bytes of every key: decimal digits, so N keys need at least log₁₀ N
	N    int64   // number of different keys
	Skew float64 // zipf only, above 1
}

// MaxKeySize bounds a key.
const MaxKeySize = 1 << 16

type keys struct {
	Keys
	seed uint64
	// Constants of the rejection-inversion method.
	atX1, atN, shift float64
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
	switch {
	case k.N < 1:
		return fmt.Errorf("the number of keys must be 1 or more, not %d", k.N)
	case k.Size < 1 || k.Size > MaxKeySize:
		return fmt.Errorf("key size %d is not between 1 and %d bytes", k.Size, MaxKeySize)
	case k.Size < digits(k.N-1):
		return fmt.Errorf("%d keys need %d bytes each, not %d", k.N, digits(k.N-1), k.Size)
	case k.Kind == KeysZipf && !(k.Skew > 1 && k.Skew <= 100):
		return fmt.Errorf("the skew of zipf keys must be above 1 (and 100 at most), not %v", k.Skew)
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
	if k.Kind == KeysZipf {
		out.atX1 = out.integral(1.5) - 1
		out.atN = out.integral(float64(k.N) + 0.5)
		out.shift = 2 - out.inverse(out.integral(2.5)-math.Pow(2, -k.Skew))
	}
	return out, nil
}

// digits is the number of decimal digits of n ≥ 0.
func digits(n int64) int {
	count := 1
	for ; n > 9; n /= 10 {
		count++
	}
	return count
}

// Key fills dst with the key of message n and returns it; nil when messages have no keys. A
// dst with too little capacity is replaced.
func (s *Source) Key(dst []byte, n int64) []byte {
	k := &s.keys
	if k.Kind == KeysNone {
		return nil
	}
	if cap(dst) < k.Size {
		dst = make([]byte, k.Size)
	}
	dst = dst[:k.Size]
	index := uint64(k.index(n))
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
	return k.zipf(mix(uint64(n) ^ k.seed))
}

// zipf draws by rejection-inversion (Hörmann and Derflinger 1996), which needs no table; word
// is where its random numbers start.
func (k *keys) zipf(word uint64) int64 {
	for {
		u := k.atN + float64(word>>11)/(1<<53)*(k.atX1-k.atN)
		word = mix(word)
		x := k.inverse(u)
		rank := min(max(math.Floor(x+0.5), 1), float64(k.N))
		if rank-x <= k.shift || u >= k.integral(rank+0.5)-math.Pow(rank, -k.Skew) {
			return int64(rank) - 1
		}
	}
}

// integral is ∫ x^−s dx without its constant, inverse its inverse.
func (k *keys) integral(x float64) float64 { return math.Pow(x, 1-k.Skew) / (1 - k.Skew) }

func (k *keys) inverse(y float64) float64 { return math.Pow((1-k.Skew)*y, 1/(1-k.Skew)) }
