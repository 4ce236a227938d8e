package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The ways in which bytes of a broker can be malformed; Reader.Err wraps one of them.
var (
	ErrTruncated = errors.New("message ends too early")
	ErrLength    = errors.New("length or count out of bounds")
	ErrVarint    = errors.New("variable-length integer is too long")
	ErrNull      = errors.New("null where a value is required")
	ErrTrailing  = errors.New("bytes left over after the message")
)

// Reader decodes Kafka primitives from one message. The first error sticks: every later call
// returns zero values, so that a decoder checks Err once at its end (and at each count that it
// loops over, which is then 0). It allocates nothing but its error; slices that it returns share
// memory with the message.
//
// The zero value reads an empty message. Not safe for concurrent use.
type Reader struct {
	b        []byte
	off      int
	flexible bool
	err      error
}

// Reset starts reading b. flexible says whether the message is of a flexible version (KIP-482):
// Str, Bytes and Array then read the compact forms, and Tags reads tagged fields, which is a
// no-op otherwise.
func (r *Reader) Reset(b []byte, flexible bool) { *r = Reader{b: b, flexible: flexible} }

// Err is the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Remaining is the number of bytes not read yet; 0 after an error.
func (r *Reader) Remaining() int { return len(r.b) - r.off }

// Offset is the number of bytes read so far.
func (r *Reader) Offset() int { return r.off }

// Close returns the first error, or ErrTrailing when bytes are left over.
func (r *Reader) Close() error {
	if r.err == nil && r.Remaining() > 0 {
		r.fail(ErrTrailing, int64(r.Remaining()))
	}
	return r.err
}

// fail keeps the first error and leaves nothing to read.
func (r *Reader) fail(kind error, value int64) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d of %d: %w (%d)", r.off, len(r.b), kind, value)
	}
	r.off = len(r.b)
}

// Span returns the next n bytes, capped so that appending to it cannot overwrite what follows.
func (r *Reader) Span(n int) []byte {
	if n < 0 || n > r.Remaining() {
		r.fail(spanError(n), int64(n))
		return nil
	}
	s := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return s
}

func spanError(n int) error {
	if n < 0 {
		return ErrLength
	}
	return ErrTruncated
}

// fixed is Span for the fixed-size integers.
func (r *Reader) fixed(n int) []byte {
	if n > len(r.b)-r.off {
		r.fail(ErrTruncated, int64(n))
		return nil
	}
	r.off += n
	return r.b[r.off-n : r.off]
}

// Int8 reads one byte.
func (r *Reader) Int8() int8 {
	if s := r.fixed(1); s != nil {
		return int8(s[0])
	}
	return 0
}

// Bool reads one byte; anything but 0 is true.
func (r *Reader) Bool() bool { return r.Int8() != 0 }

// Int16 reads two bytes, big endian like all that follow.
func (r *Reader) Int16() int16 {
	if s := r.fixed(2); s != nil {
		return int16(binary.BigEndian.Uint16(s))
	}
	return 0
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 {
	if s := r.fixed(4); s != nil {
		return binary.BigEndian.Uint32(s)
	}
	return 0
}

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 {
	if s := r.fixed(8); s != nil {
		return int64(binary.BigEndian.Uint64(s))
	}
	return 0
}

// UUID reads sixteen bytes, as in topic ids.
func (r *Reader) UUID() (id [16]byte) {
	copy(id[:], r.fixed(16))
	return id
}

// Uvarint reads an unsigned varint of at most 32 bits (five bytes).
func (r *Reader) Uvarint() uint32 {
	v := r.uvarint(5)
	if v > 1<<32-1 {
		r.fail(ErrVarint, int64(v))
		return 0
	}
	return uint32(v)
}

// Varint reads a zigzag varint of 32 bits, as in records.
func (r *Reader) Varint() int32 {
	v := r.Uvarint()
	return int32(v>>1) ^ -int32(v&1)
}

// Varlong reads a zigzag varint of 64 bits.
func (r *Reader) Varlong() int64 {
	v := r.uvarint(10)
	return int64(v>>1) ^ -int64(v&1)
}

func (r *Reader) uvarint(most int) uint64 {
	var v uint64
	for i, c := range r.b[r.off:] {
		if i == most || (i == 9 && c > 1) {
			r.fail(ErrVarint, int64(i))
			return 0
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.off += i + 1
			return v
		}
	}
	r.fail(ErrTruncated, 1)
	return 0
}
