package wire

// Str reads a string that must not be null.
func (r *Reader) Str() []byte {
	s, null := r.NullableStr()
	if null && r.err == nil {
		r.fail(ErrNull, -1)
	}
	return s
}

// NullableStr reads a string; null is told apart from the empty one.
func (r *Reader) NullableStr() (s []byte, null bool) {
	if r.flexible {
		return r.sized(int64(r.Uvarint()) - 1)
	}
	return r.sized(int64(r.Int16()))
}

// Bytes reads bytes that must not be null.
func (r *Reader) Bytes() []byte {
	s, null := r.NullableBytes()
	if null && r.err == nil {
		r.fail(ErrNull, -1)
	}
	return s
}

// NullableBytes reads bytes (also record sets); null is told apart from the empty ones.
func (r *Reader) NullableBytes() (s []byte, null bool) {
	if r.flexible {
		return r.sized(int64(r.Uvarint()) - 1)
	}
	return r.sized(int64(r.Int32()))
}

// VarintBytes reads bytes after a zigzag length, as in records; -1 is null.
func (r *Reader) VarintBytes() (s []byte, null bool) { return r.sized(int64(r.Varint())) }

// sized takes n bytes; -1 means null. After an error it is null too, so that no half-read value
// looks like an empty one.
func (r *Reader) sized(n int64) (s []byte, null bool) {
	switch {
	case r.err != nil || n == -1:
		return nil, true
	case n < -1:
		r.fail(ErrLength, n)
		return nil, true
	case n > int64(r.Remaining()):
		r.fail(ErrTruncated, n)
		return nil, true
	}
	return r.Span(int(n)), false
}

// Array reads the count of an array whose elements take at least minBytes each (taken as 1 when
// less), and returns 0 for null, for an empty one and after an error. A count that the remaining
// bytes cannot hold is an error, so that the count may be used to allocate.
func (r *Reader) Array(minBytes int) int {
	n, _ := r.NullableArray(minBytes)
	return n
}

// NullableArray is Array for those who must tell null from empty.
func (r *Reader) NullableArray(minBytes int) (n int, null bool) {
	var count int64
	if r.flexible {
		count = int64(r.Uvarint()) - 1
	} else {
		count = int64(r.Int32())
	}
	switch {
	case r.err != nil || count == -1:
		return 0, true
	case count < -1 || count*int64(max(minBytes, 1)) > int64(r.Remaining()):
		r.fail(ErrLength, count)
		return 0, true
	}
	return int(count), false
}

// Tags skips the tagged fields at the end of a structure of a flexible version, and reads
// nothing in others.
func (r *Reader) Tags() {
	for n := r.TagCount(); n > 0; n-- {
		r.Tag()
	}
}

// TagCount reads how many tagged fields follow; 0 in versions that are not flexible.
func (r *Reader) TagCount() int {
	if !r.flexible {
		return 0
	}
	n := int64(r.Uvarint())
	if n*2 > int64(r.Remaining()) { // a tag has a number and a length, a byte each at least
		r.fail(ErrLength, n)
		return 0
	}
	return int(n)
}

// Tag reads one tagged field: its number and its bytes, to be read by a Reader of their own.
func (r *Reader) Tag() (number uint32, value []byte) {
	number = r.Uvarint()
	size := int64(r.Uvarint())
	value, _ = r.sized(size)
	return number, value
}
