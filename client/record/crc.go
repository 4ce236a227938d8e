package record

import "hash/crc32"

// castagnoli is the polynomial of Kafka's batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C is the checksum of Kafka's batches: CRC-32 with the Castagnoli polynomial (RFC 3720).
func CRC32C(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// joinCRC is the checksum of two pieces together, from that of the first and those of the second
// and its length. Putting n bytes behind a message multiplies its polynomial by x^8n, and a sum is
// what is left of it divided by the generator; what is inverted before and after cancels out
// (Adler, crc32_combine of zlib).
func joinCRC(first, second uint32, n int) uint32 {
	return times(first, powers.of(uint64(n)*8)) ^ second
}

// generator is the polynomial without its leading term, the coefficient of x^31 in the lowest bit.
const (
	generator = crc32.Castagnoli
	one       = 1 << 31 // x^0
)

// times multiplies two polynomials, modulo the generator.
func times(a, b uint32) (product uint32) {
	for a != 0 {
		product ^= b & -(a >> 31)
		a, b = a<<1, b>>1^generator&-(b&1)
	}
	return product
}

// squares are x^(2^k), modulo the generator.
type squares [64]uint32

var powers = func() (s squares) {
	s[0] = one >> 1
	for k := 1; k < len(s); k++ {
		s[k] = times(s[k-1], s[k-1])
	}
	return s
}()

// of is x^n.
func (s *squares) of(n uint64) uint32 {
	p := uint32(one)
	for k := 0; n != 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			p = times(p, s[k])
		}
	}
	return p
}
