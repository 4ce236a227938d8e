package wire

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func reader(b []byte, flexible bool) *Reader {
	var r Reader
	r.Reset(b, flexible)
	return &r
}

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flexible := rapid.Bool().Draw(t, "flexible")
		i8, i16, i32, i64 := rapid.Int8().Draw(t, "i8"), rapid.Int16().Draw(t, "i16"), rapid.Int32().Draw(t, "i32"), rapid.Int64().Draw(t, "i64")
		u, vi, vl := rapid.Uint32().Draw(t, "u"), rapid.Int32().Draw(t, "vi"), rapid.Int64().Draw(t, "vl")
		s, b := rapid.StringN(0, 40, -1).Draw(t, "s"), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "b")

		w := AppendInt8(nil, i8)
		w = AppendBool(w, true)
		w = AppendInt16(w, i16)
		w = AppendInt32(w, i32)
		w = AppendInt64(w, i64)
		w = AppendUvarint(w, u)
		w = AppendVarint(w, vi)
		w = AppendVarlong(w, vl)
		w = AppendStr(w, s, flexible)
		w = AppendNullStr(w, flexible)
		w = AppendBytes(w, b, flexible)
		w = AppendNullBytes(w, flexible)
		w = AppendArrayLen(w, 2, flexible)
		w = append(w, 7, 8)
		w = AppendArrayLen(w, -1, flexible)
		w = AppendTags(w, flexible)

		r := reader(w, flexible)
		require.Equal(t, i8, r.Int8())
		require.True(t, r.Bool())
		require.Equal(t, i16, r.Int16())
		require.Equal(t, i32, r.Int32())
		require.Equal(t, i64, r.Int64())
		require.Equal(t, u, r.Uvarint())
		require.Equal(t, vi, r.Varint())
		require.Equal(t, vl, r.Varlong())
		require.Equal(t, s, string(r.Str()))
		_, null := r.NullableStr()
		require.True(t, null)
		require.True(t, bytes.Equal(b, r.Bytes()))
		_, null = r.NullableBytes()
		require.True(t, null)
		require.Equal(t, 2, r.Array(1))
		require.Equal(t, []byte{7, 8}, r.Span(2))
		_, null = r.NullableArray(1)
		require.True(t, null)
		r.Tags()
		require.NoError(t, r.Close())
	})
}

func TestMalformedBytes(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       []byte
		flexible bool
		read     func(*Reader)
		want     error
	}{
		{"an int32 of three bytes", []byte{0, 0, 1}, false, func(r *Reader) { r.Int32() }, ErrTruncated},
		{"a UUID of 15 bytes", make([]byte, 15), false, func(r *Reader) { r.UUID() }, ErrTruncated},
		{"a string longer than the message", []byte{0, 9, 'a'}, false, func(r *Reader) { r.Str() }, ErrTruncated},
		{"a string of length -2", []byte{0xff, 0xfe}, false, func(r *Reader) { r.NullableStr() }, ErrLength},
		{"a null string where one is required", []byte{0xff, 0xff}, false, func(r *Reader) { r.Str() }, ErrNull},
		{"null compact bytes where some are required", []byte{0}, true, func(r *Reader) { r.Bytes() }, ErrNull},
		{"bytes of 2 GiB", []byte{0x7f, 0xff, 0xff, 0xff}, false, func(r *Reader) { r.Bytes() }, ErrTruncated},
		{"compact bytes of 4 GiB", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, true, func(r *Reader) { r.Bytes() }, ErrTruncated},
		{"an array of more elements than bytes", []byte{0, 0, 0, 3, 1, 2}, false, func(r *Reader) { r.Array(1) }, ErrLength},
		{"an array whose elements of 8 bytes do not fit", append([]byte{0, 0, 0, 2}, make([]byte, 15)...), false, func(r *Reader) { r.Array(8) }, ErrLength},
		{"an array of elements of no size is bounded all the same", []byte{0x7f, 0xff, 0xff, 0xff}, false, func(r *Reader) { r.Array(0) }, ErrLength},
		{"an array of -2", []byte{0xff, 0xff, 0xff, 0xfe}, false, func(r *Reader) { r.Array(1) }, ErrLength},
		{"a varint without an end", []byte{0x80, 0x80}, true, func(r *Reader) { r.Uvarint() }, ErrTruncated},
		{"a varint of six bytes", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 1}, true, func(r *Reader) { r.Uvarint() }, ErrVarint},
		{"a varint of 33 bits", []byte{0xff, 0xff, 0xff, 0xff, 0x1f}, true, func(r *Reader) { r.Uvarint() }, ErrVarint},
		{"a varlong of 65 bits", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, true, func(r *Reader) { r.Varlong() }, ErrVarint},
		{"tagged fields that are not there", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, true, func(r *Reader) { r.Tags() }, ErrLength},
		{"a tagged field longer than the message", []byte{1, 0, 9, 1}, true, func(r *Reader) { r.Tags() }, ErrTruncated},
		{"a negative span", []byte{1}, true, func(r *Reader) { r.Span(-1) }, ErrLength},
		{"bytes left over", []byte{1, 2}, true, func(r *Reader) { r.Int8(); _ = r.Close() }, ErrTrailing},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reader(c.in, c.flexible)
			c.read(r)
			require.ErrorIs(t, r.Err(), c.want)
			require.Zero(t, r.Remaining(), "nothing is read after an error")
			require.Zero(t, r.Int64())
			require.ErrorIs(t, r.Err(), c.want, "the first error sticks")
			require.True(t, Classify(r.Err()).Has(Fatal|OutcomeUnknown))
		})
	}
}

func TestTaggedFields(t *testing.T) {
	b := append([]byte{2, 5, 2, 'a', 'b', 200, 1, 0}, 42)
	r := reader(b, true)
	require.Equal(t, 2, r.TagCount())
	number, value := r.Tag()
	require.Equal(t, uint32(5), number)
	require.Equal(t, "ab", string(value))
	number, value = r.Tag()
	require.Equal(t, uint32(200), number)
	require.Empty(t, value)
	require.Equal(t, int8(42), r.Int8())

	r = reader(b, true)
	r.Tags()
	require.Equal(t, int8(42), r.Int8())

	r = reader([]byte{42}, false)
	r.Tags()
	require.Equal(t, int8(42), r.Int8(), "versions that are not flexible have no tagged fields")
}

func TestSpansCannotOverwriteTheirNeighbours(t *testing.T) {
	b := []byte{0, 1, 'a', 'b'}
	_ = append(reader(b, false).Str(), 'X')
	require.Equal(t, byte('b'), b[3])
}

func TestReaderAllocatesNothing(t *testing.T) {
	b := AppendInt64(AppendStr(AppendVarint(nil, math.MinInt32), "topic", true), 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var r Reader
		r.Reset(b, true)
		r.Varint()
		r.Str()
		r.Int64()
		if r.Close() != nil {
			panic("not read")
		}
	}))
}

// FuzzReader runs a program of reads over bytes: nothing panics, nothing is read outside the
// bytes, counts never exceed what is left, and errors stick.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, []byte{0, 3, 'a', 'b', 'c', 1, 2, 3}, true)
	f.Add([]byte{12, 12, 12}, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, true)
	f.Add([]byte{10, 11, 9}, []byte{0x80, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, program, b []byte, flexible bool) {
		r := reader(b, flexible)
		for _, op := range program {
			failed := r.Err()
			before := r.Remaining()
			n := step(r, op)
			if n < 0 || n > before {
				t.Fatalf("op %d gave %d of %d bytes", op, n, before)
			}
			if r.Remaining() < 0 || r.Remaining() > before || r.Offset()+r.Remaining() != len(b) {
				t.Fatalf("op %d moved from %d to %d left", op, before, r.Remaining())
			}
			if failed != nil && (!errors.Is(r.Err(), failed) || n != 0) {
				t.Fatal("an error did not stick")
			}
		}
	})
}

// step does one read and returns the size or count that it gave.
func step(r *Reader, op byte) int {
	var b []byte
	switch op % 16 {
	case 0:
		r.Int8()
	case 1:
		r.Int16()
	case 2:
		r.Int32()
	case 3:
		r.Int64()
	case 4:
		r.UUID()
	case 5:
		r.Uvarint()
	case 6:
		r.Varint()
	case 7:
		r.Varlong()
	case 8:
		b = r.Str()
	case 9:
		b, _ = r.NullableStr()
	case 10:
		b = r.Bytes()
	case 11:
		b, _ = r.VarintBytes()
	case 12:
		return r.Array(1)
	case 13:
		r.Tags()
	case 14:
		_, b = r.Tag()
	case 15:
		b = r.Span(int(op))
	}
	return len(b)
}
