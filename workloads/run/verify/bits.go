package verify

import mathbits "math/bits"

// bits is a set of numbers, in words of 1024. A number that no sane producer has costs one word,
// not everything up to it.
type bits map[int64]*[16]uint64

// set adds n and says whether it was not there.
func (b bits) set(n int64) bool {
	w := b[n>>10]
	if w == nil {
		w = new([16]uint64)
		b[n>>10] = w
	}
	bit := uint64(1) << (n & 63)
	at := &w[n>>6&15]
	if *at&bit != 0 {
		return false
	}
	*at |= bit
	return true
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
