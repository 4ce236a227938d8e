package record

import "math/bits"

// zigzag maps small negative and positive numbers to small unsigned ones, as Kafka's (and
// Protocol Buffers') signed varints do.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// zigzagLen is zigzag for a length or count, which is never negative.
func zigzagLen(n int) uint64 { return uint64(n) << 1 }

// uvarintLen is the number of bytes of u as a varint, without a branch: ⌈bits/7⌉, at least 1.
func uvarintLen(u uint64) int { return (9*bits.Len64(u) + 64) / 64 }

// putUvarint writes u at b[i:] and returns the index after it. The one-byte case, which is most
// of them, is inlined in the caller.
func putUvarint(b []byte, i int, u uint64) int {
	if u < 0x80 {
		b[i] = byte(u)
		return i + 1
	}
	return putLongUvarint(b, i, u)
}

func putLongUvarint(b []byte, i int, u uint64) int {
	if u < 1<<14 {
		b[i+1] = byte(u >> 7)
		b[i] = byte(u) | 0x80
		return i + 2
	}
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
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
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
