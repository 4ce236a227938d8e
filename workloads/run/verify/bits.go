package verify

import (
	"maps"
	mathbits "math/bits"
	"slices"
)

// wordBits is how many numbers a word of bits holds.
const wordBits = 1024

// word is that many neighbouring numbers.
type word [wordBits / 64]uint64

// whole stands for every word all of whose numbers are there, so that a long sequence without gaps
// costs an entry a word and no more.
var whole = func() *word {
	w := new(word)
	for i := range w {
		w[i] = ^uint64(0)
	}
	return w
}()

// bits is a set of numbers, in words of 1024. A number that no sane producer has costs one word,
// not everything up to it.
type bits map[int64]*word

// What a word costs in bytes, and its entry in the map, about.
const (
	wordBytes  = wordBits / 8
	entryBytes = 48
)

// set adds n and says whether it was not there.
func (b bits) set(n int64) bool {
	fresh, _ := b.put(n)
	return fresh
}

// put is set that also says by how many bytes b has grown; less than 0 where it has shrunk.
func (b bits) put(n int64) (fresh bool, grown int64) {
	w := b[n>>10]
	switch w {
	case nil:
		w = new(word)
		b[n>>10] = w
		grown = wordBytes + entryBytes
	case whole:
		return false, 0
	}
	bit := uint64(1) << (n & 63)
	at := &w[n>>6&15]
	if *at&bit != 0 {
		return false, 0
	}
	if *at |= bit; *at == ^uint64(0) && *w == *whole {
		b[n>>10] = whole
		grown -= wordBytes
	}
	return true, grown
}

func (b bits) has(n int64) bool {
	w := b[n>>10]
	return w != nil && w[n>>6&15]&(1<<(n&63)) != 0
}

// without counts the numbers of b that are not in o.
func (b bits) without(o bits) (n int64) {
	for at, w := range b {
		other := o[at]
		for i, word := range w {
			if other != nil {
				word &^= other[i]
			}
			n += int64(mathbits.OnesCount64(word))
		}
	}
	return n
}

// below counts the numbers of b from 0 to n, n left out.
func (b bits) below(n int64) (count int64) {
	for at, w := range b {
		first := at << 10
		switch {
		case first < 0 || first >= n:
		case first+wordBits <= n:
			for _, part := range w {
				count += int64(mathbits.OnesCount64(part))
			}
		default:
			for i := first; i < n; i++ {
				if b.has(i) {
					count++
				}
			}
		}
	}
	return count
}

// numbers are those from one to another, both included.
type numbers struct{ from, to int64 }

// gaps lists, in order, the first stretches of numbers from lo to hi, both included, that are not in b.
// It looks at what is there, however large the stretches are.
func (b bits) gaps(lo, hi int64, most int) (list []numbers) {
	next := lo // everything before is there or listed
	note := func(until int64) bool {
		if until > next {
			list = append(list, numbers{next, until - 1})
		}
		return len(list) >= most
	}
	for _, at := range slices.Sorted(maps.Keys(b)) {
		first := at << 10
		if first+wordBits <= lo || first > hi {
			continue
		}
		if b[at] == whole {
			if note(first) {
				return list
			}
			next = max(next, first+wordBits)
			continue
		}
		for n := max(first, lo); n < first+wordBits && n <= hi; n++ {
			if !b.has(n) {
				continue
			}
			if note(n) {
				return list
			}
			next = n + 1
		}
	}
	note(hi + 1)
	return list
}
