package wire

import "encoding/binary"

// AppendInt8 appends one byte.
func AppendInt8(dst []byte, v int8) []byte { return append(dst, byte(v)) }

// AppendBool appends 1 for true, 0 for false.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendInt16 appends two bytes, big endian like all that follow.
func AppendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

// AppendInt32 appends four bytes.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendInt64 appends eight bytes.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendUvarint appends an unsigned varint.
func AppendUvarint(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// AppendVarint appends a zigzag varint of 32 bits.
func AppendVarint(dst []byte, v int32) []byte { return binary.AppendVarint(dst, int64(v)) }

// AppendVarlong appends a zigzag varint of 64 bits.
func AppendVarlong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// AppendStr appends a string, compact when flexible. Strings longer than 32 767 bytes do not
// exist in versions that are not flexible; callers check lengths of what users give.
func AppendStr[S ~string | ~[]byte](dst []byte, s S, flexible bool) []byte {
	if flexible {
		dst = AppendUvarint(dst, uint32(len(s))+1)
	} else {
		dst = AppendInt16(dst, int16(len(s)))
	}
	return append(dst, s...)
}

// AppendNullStr appends a null string.
func AppendNullStr(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return AppendInt16(dst, -1)
}

// AppendBytesLen appends the length that stands before n bytes, which the caller appends (or
// writes from elsewhere: a record set is not copied into its request).
func AppendBytesLen(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return AppendUvarint(dst, uint32(n)+1)
	}
	return AppendInt32(dst, int32(n))
}

// AppendBytes appends bytes with their length.
func AppendBytes(dst, b []byte, flexible bool) []byte {
	return append(AppendBytesLen(dst, len(b), flexible), b...)
}

// AppendNullBytes appends null bytes.
func AppendNullBytes(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return AppendInt32(dst, -1)
}

// AppendArrayLen appends the count of an array's elements; -1 is a null array.
func AppendArrayLen(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return AppendUvarint(dst, uint32(n+1))
	}
	return AppendInt32(dst, int32(n))
}

// AppendTags ends a structure: no tagged fields when flexible, nothing otherwise.
func AppendTags(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return dst
}
