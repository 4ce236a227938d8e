package payload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Distributions of sizes.
const (
	SizesFixed   = "fixed"
	SizesUniform = "uniform" // every size from Min to Max is as likely
	SizesNormal  = "normal"  // around Config.Size with Deviation, cut off at Min and Max
	SizesZipf    = "zipf"    // size Min+k has likelihood ∝ (1+k)^−Skew, up to Max: many small, few large
	SizesList    = "list"    // any of List is as likely: give a size as often as it is seen
)

// Sizes says how the sizes of random values are spread. The zero value is fixed: Config.Size.
type Sizes struct {
	Kind      string
	Min, Max  int     // bytes; uniform, normal and zipf
	Deviation float64 // normal: standard deviation in bytes
	Skew      float64 // zipf: above 0, 100 at most
	List      []int32 // list
}

// sizeTable is how many sizes a distribution is represented by: those at as many evenly spaced
// quantiles, or as many draws.
const sizeTable = 1 << 16

// CheckSizes reports what is wrong with a distribution of sizes around size, as New does.
func CheckSizes(s Sizes, size int) error {
	switch s.Kind {
	case "", SizesFixed:
		return nil
	case SizesUniform, SizesNormal, SizesZipf:
	case SizesList:
		return checkList(s.List)
	default:
		return fmt.Errorf("%q is no distribution of sizes; there are fixed, uniform, normal, zipf and list", s.Kind)
	}
	switch {
	case s.Min < 0 || s.Max > MaxSize || s.Min > s.Max:
		return fmt.Errorf("sizes from %d to %d: they must be between 0 and %d bytes, the smallest first", s.Min, s.Max, MaxSize)
	case s.Kind == SizesNormal && !(s.Deviation > 0 && s.Deviation <= MaxSize):
		return fmt.Errorf("the deviation of normal sizes must be above 0 (and %d at most), not %v", MaxSize, s.Deviation)
	case s.Kind == SizesNormal && (size < s.Min || size > s.Max):
		return fmt.Errorf("the mean size %d is not between the smallest, %d, and the largest, %d", size, s.Min, s.Max)
	case s.Kind == SizesZipf && !(s.Skew > 0 && s.Skew <= 100):
		return fmt.Errorf("the skew of zipf sizes must be above 0 (and 100 at most), not %v", s.Skew)
	}
	return nil
}

func checkList(list []int32) error {
	if len(list) == 0 {
		return errors.New("a list of sizes needs at least one")
	}
	for i, n := range list {
		if n < 0 || n > MaxSize {
			return fmt.Errorf("size %d of the list, %d, is not between 0 and %d bytes", i+1, n, MaxSize)
		}
	}
	return nil
}

// sizes draws the size of a message from a table.
type sizes struct {
	table []int32
	seed  uint64
}

// newSizes lays a distribution out; nil for a fixed size. It was checked.
func newSizes(s Sizes, size int, seed uint64) *sizes {
	out := &sizes{seed: mix(seed ^ 0x73697a65)}
	switch s.Kind {
	case "", SizesFixed:
		return nil
	case SizesList:
		out.table = s.List
		return out
	}
	out.table = make([]int32, sizeTable)
	zipf := newZipf(int64(s.Max-s.Min)+1, s.Skew)
	for i := range out.table {
		p := (float64(i) + 0.5) / sizeTable
		at := 0.0
		switch s.Kind {
		case SizesUniform:
			at = float64(s.Min) + math.Floor(p*(float64(s.Max-s.Min)+1))
		case SizesNormal:
			at = math.Round(float64(size) + s.Deviation*math.Sqrt2*math.Erfinv(2*p-1))
		case SizesZipf:
			at = float64(int64(s.Min) + zipf.draw(mix(uint64(i)^out.seed)))
		}
		out.table[i] = int32(min(max(at, float64(s.Min)), float64(s.Max)))
	}
	return out
}

// at is the size of message n.
func (s *sizes) at(n int64) int {
	i, _ := bits.Mul64(mix(uint64(n)^s.seed), uint64(len(s.table)))
	return int(s.table[i])
}

// bounds are those of the table.
func (s *sizes) bounds() Bounds {
	b := Bounds{Min: MaxSize}
	for _, n := range s.table {
		b.Min, b.Max, b.Mean = min(b.Min, int(n)), max(b.Max, int(n)), b.Mean+float64(n)
	}
	b.Mean /= float64(len(s.table))
	return b
}

// Bounds say how long something is, in bytes.
type Bounds struct {
	Min, Max int
	Mean     float64
}

func exactly(n int) Bounds { return Bounds{Min: n, Max: n, Mean: float64(n)} }

func (b Bounds) plus(o Bounds) Bounds {
	return Bounds{Min: b.Min + o.Min, Max: b.Max + o.Max, Mean: b.Mean + o.Mean}
}

// linesBounds are those of a list of texts.
func linesBounds(lines [][]byte) Bounds {
	b := Bounds{Min: math.MaxInt}
	for _, line := range lines {
		b.Min, b.Max, b.Mean = min(b.Min, len(line)), max(b.Max, len(line)), b.Mean+float64(len(line))
	}
	b.Mean /= float64(len(lines))
	return b
}
