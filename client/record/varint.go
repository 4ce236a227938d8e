package record

import "math/bits"

// zigzag maps small negative and positive numbers to small unsigned ones, as Kafka's (and
// Protocol Buffers') signed varints do.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// zigzagLen is zigzag for a length or count, which is never negative.
func zigzagLen(n int) uint64 { return uint64(n) << 1 }

// uvarintLen is the number of bytes of u as a varint. Comparing first is faster than counting
// bits: lengths of one or two bytes are nearly all there are, and predicted.
func uvarintLen(u uint64) int {
	if u < 0x80 {
		return 1
	}
	if u < 1<<14 {
		return 2
	}
	return longUvarintLen(u)
}

func longUvarintLen(u uint64) int { return int(9*uint(bits.Len64(u))+64) >> 6 }

// putUvarint writes u at b[i:] and returns the index after it. Up to two bytes, which is nearly
// all of them, are inlined in the caller.
func putUvarint(b []byte, i int, u uint64) int {
	if u < 0x80 {
		b[i] = byte(u)
		return i + 1
	}
	if u < 1<<14 {
		b[i], b[i+1] = byte(u)|0x80, byte(u>>7)
		return i + 2
	}
	return putLongUvarint(b, i, u)
}

func putLongUvarint(b []byte, i int, u uint64) int {
	for u >= 0x80 {
		b[i] = byte(u) | 0x80
		u >>= 7
		i++
	}
	b[i] = byte(u)
	return i + 1
}

// uvarint reads a varint at b[i:] and returns the index after it, or -1 when b ends within it or
// it has more than 64 bits.
func uvarint(b []byte, i int) (uint64, int) {
	if uint(i) < uint(len(b)) {
		c := uint64(b[i])
		if c < 0x80 {
			return c, i + 1
		}
		if i+1 < len(b) && b[i+1] < 0x80 {
			return c&0x7f | uint64(b[i+1])<<7, i + 2
		}
	}
	return longUvarint(b, i)
}

func longUvarint(b []byte, i int) (uint64, int) {
	var u uint64
	for shift := uint(0); shift < 70; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		if c < 0x80 {
			if shift == 63 && c > 1 {
				return 0, -1
			}
			return u | uint64(c)<<shift, i
		}
		u |= uint64(c&0x7f) << shift
	}
	return 0, -1
}
