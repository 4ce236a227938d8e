package record

// Plan is a batch of which only the size is worked out: messages that are added to it are encoded
// later, by appending the same ones, with the same arguments, to a [Builder] that was reset to the
// same first timestamp. It looks at no byte of keys and values. Call Reset before the first Add and
// for each further batch. Not safe for concurrent use.
type Plan struct {
	first int64
	size  int
	count int32
}

// Reset starts a new batch; see [Builder.Reset] for the timestamp.
func (p *Plan) Reset(firstTimestampMs int64) {
	*p = Plan{first: firstTimestampMs, size: HeaderSize}
}

// Add counts one message as the next record.
func (p *Plan) Add(timestampMs int64, key, value []byte, headers []Header) {
	p.size = p.SizeWith(timestampMs, key, value, headers)
	p.count++
}

// SizeWith is the exact size in bytes of the uncompressed batch if this message were added.
func (p *Plan) SizeWith(timestampMs int64, key, value []byte, headers []Header) int {
	return p.size + wholeSize(timestampMs-p.first, p.count, key, value, headers)
}

// First is the timestamp in milliseconds that Reset was given.
func (p *Plan) First() int64 { return p.first }

// Len is the size in bytes of the uncompressed batch so far; HeaderSize when empty.
func (p *Plan) Len() int { return p.size }

// Count is the number of records so far.
func (p *Plan) Count() int { return int(p.count) }
