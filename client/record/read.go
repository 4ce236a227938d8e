package record

import "math"

// Record is one record as read. Key, Value and headers alias the bytes it was read from.
type Record struct {
	// OffsetDelta is the record's offset less the batch's BaseOffset; see [Batch.Offset].
	OffsetDelta int32
	// TimestampDelta is relative to the batch's FirstTimestamp, in milliseconds; see
	// [Batch.Timestamp].
	TimestampDelta int64
	// Key and Value are nil if null, which is distinct from empty.
	Key, Value []byte

	headers     []byte
	headerCount int32
}

var (
	errRecordCut    = &CorruptError{What: "record ends within a field"}
	errRecordLength = &CorruptError{What: "length of a record is not within the data"}
	errRecordOffset = &CorruptError{What: "offset delta of a record is out of range"}
	errRecordRest   = &CorruptError{What: "record is longer than its fields"}
	errHeaderCount  = &CorruptError{What: "header count of a record is not within the data"}
	errHeader       = &CorruptError{What: "header ends within a field, or its key is null"}
	errControl      = &CorruptError{What: "control record without a valid key"}
)

// ReadRecord reads the record at the start of src, which is what [Batch.Decompressed] gave or an
// earlier ReadRecord left of it. It allocates nothing. Headers are only counted; see
// [Record.Headers]. The error is a *[CorruptError], and r is then not to be used.
func ReadRecord(src []byte, r *Record) (rest []byte, err error) {
	u, i := uvarint(src, 0)
	if i < 0 {
		return src, errRecordLength
	}
	length := unzigzag(u)
	if length < minRecordSize-1 || length > int64(len(src)-i) {
		return src, errRecordLength
	}
	end := i + int(length)
	body := src[i:end:end]
	rest = src[end:]

	// body[0] are the record's attributes, of which none are defined. Nearly all fields take one
	// byte or two: these are read here, without a call.
	if c := body[1]; c < 0x80 {
		u, i = uint64(c), 2
	} else if u, i = uvarint(body, 1); i < 0 {
		return src, errRecordCut
	}
	r.TimestampDelta = unzigzag(u)
	if j := i + 1; j < len(body) && body[i] < 0x80 {
		u, i = uint64(body[i]), j
	} else if j < len(body) && body[j] < 0x80 {
		u, i = uint64(body[i]&0x7f)|uint64(body[j])<<7, j+1
	} else if u, i = uvarint(body, i); i < 0 {
		return src, errRecordCut
	}
	if u&1 != 0 || u>>1 > math.MaxInt32 {
		return src, errRecordOffset
	}
	r.OffsetDelta = int32(u >> 1)
	if i < len(body) && body[i] == 1 { // null
		r.Key = nil
		i++
	} else if r.Key, i = bytesAt(body, i); i < 0 {
		return src, errRecordCut
	}
	if r.Value, i = bytesAt(body, i); i < 0 {
		return src, errRecordCut
	}
	if i == len(body)-1 && body[i] == 0 { // as nearly always: no headers
		r.headers, r.headerCount = nil, 0
		return rest, nil
	}
	if err := r.readHeaderCount(body, i); err != nil {
		return src, err
	}
	return rest, nil
}

// RecordSize is the size of the record at the start of src, as it says itself; 0 when not even
// that can be read. It may be more than there is.
func RecordSize(src []byte) int {
	u, i := uvarint(src, 0)
	if length := unzigzag(u); i >= 0 && length > 0 && length <= math.MaxInt32 {
		return i + int(length)
	}
	return 0
}

// readHeaderCount keeps the headers, which are all that follows the count.
func (r *Record) readHeaderCount(body []byte, i int) error {
	u, i := uvarint(body, i)
	if i < 0 {
		return errRecordCut
	}
	r.headers, r.headerCount = body[i:], int32(u>>1)
	if u == 0 && i != len(body) {
		return errRecordRest
	}
	// A header has two fields of at least one byte.
	if u&1 != 0 || u>>1 > uint64(len(body)-i)/2 {
		return errHeaderCount
	}
	return nil
}

// bytesAt reads a field of a length and that many bytes at b[i:], nil for null, and returns the
// index after it, -1 when it is not within b.
func bytesAt(b []byte, i int) ([]byte, int) {
	var u uint64
	if j := i + 1; uint(j) < uint(len(b)) && b[i] < 0x80 {
		u, i = uint64(b[i]), j
	} else if uint(j) < uint(len(b)) && b[j] < 0x80 {
		u, i = uint64(b[i]&0x7f)|uint64(b[j])<<7, j+1
	} else if u, i = uvarint(b, i); i < 0 {
		return nil, -1
	}
	if u&1 != 0 { // -1 is null, and may be written in more bytes than it needs
		if u == 1 {
			return nil, i
		}
		return nil, -1
	}
	if u>>1 > uint64(len(b)-i) {
		return nil, -1
	}
	end := i + int(u>>1)
	return b[i:end:end], end
}

// HeaderCount is the number of headers that the record says it has.
func (r *Record) HeaderCount() int { return int(r.headerCount) }

// Headers reads the record's headers one by one.
func (r *Record) Headers() HeaderReader {
	return HeaderReader{buf: r.headers, left: r.headerCount}
}

// AppendHeaders appends the record's headers, copied, to dst. The error is a *[CorruptError].
func (r *Record) AppendHeaders(dst []Header) ([]Header, error) {
	h := r.Headers()
	for h.Next() {
		value := h.Value
		if value != nil {
			value = append(make([]byte, 0, len(value)), value...)
		}
		dst = append(dst, Header{Key: string(h.Key), Value: value})
	}
	return dst, h.Err()
}

// HeaderReader reads headers without allocating:
//
//	h := r.Headers()
//	for h.Next() { … h.Key, h.Value … }
//	if err := h.Err(); err != nil { … }
type HeaderReader struct {
	// Key and Value are those of the header that the last Next read; Value is nil if null. Both
	// alias the record.
	Key, Value []byte

	buf  []byte
	left int32
	err  error
}

// Next reads the next header. It is false at the end and at the first error.
func (h *HeaderReader) Next() bool {
	if h.left <= 0 || h.err != nil {
		if h.err == nil && len(h.buf) > 0 {
			h.err = errRecordRest
		}
		return false
	}
	i := 0
	if h.Key, i = bytesAt(h.buf, 0); i < 0 || h.Key == nil {
		h.err = errHeader
		return false
	}
	if h.Value, i = bytesAt(h.buf, i); i < 0 {
		h.err = errHeader
		return false
	}
	h.buf = h.buf[i:]
	h.left--
	return true
}

// Err is a *[CorruptError] if Next was false because the headers are damaged.
func (h *HeaderReader) Err() error { return h.err }
