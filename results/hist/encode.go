package hist

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/klauspost/compress/zlib"
)

// The V2 encoding of the HdrHistogram project (AbstractHistogram.encodeIntoByteBuffer): a
// 40-byte header and the counters as zig-zag LEB128, runs of empty ones as a negative number;
// deflated, behind 8 bytes of its own; in base64.
const (
	cookiePlain      = 0x1c849303 | 0x10
	cookieCompressed = 0x1c849304 | 0x10
	cookieVariant    = 0xf0 // bits that say nothing about V2
	headerLen        = 40
	envelopeLen      = 8
)

// encoder encodes histograms one after the other with the buffers of the one before:
// hdrhistogram-go makes a deflater of 800 KB for each.
type encoder struct {
	plain    []byte
	deflated bytes.Buffer
	deflater *zlib.Writer
	text     []byte
}

// encode is valid until the next call.
func (e *encoder) encode(h *Histogram) ([]byte, error) {
	e.plain = appendPlain(e.plain[:0], h)
	e.deflated.Reset()
	e.deflated.Write(make([]byte, envelopeLen))
	if e.deflater == nil {
		e.deflater = zlib.NewWriter(&e.deflated)
	} else {
		e.deflater.Reset(&e.deflated)
	}
	if _, err := e.deflater.Write(e.plain); err != nil {
		return nil, err
	}
	if err := e.deflater.Close(); err != nil {
		return nil, err
	}
	all := e.deflated.Bytes()
	binary.BigEndian.PutUint32(all, cookieCompressed)
	binary.BigEndian.PutUint32(all[4:], uint32(len(all)-envelopeLen))
	e.text = base64.StdEncoding.AppendEncode(e.text[:0], all)
	return e.text, nil
}

func appendPlain(to []byte, h *Histogram) []byte {
	to = binary.BigEndian.AppendUint32(to, cookiePlain)
	to = append(to, 0, 0, 0, 0) // length of the counters, below
	to = binary.BigEndian.AppendUint32(to, 0)
	to = binary.BigEndian.AppendUint32(to, Digits)
	to = binary.BigEndian.AppendUint64(to, Lowest)
	to = binary.BigEndian.AppendUint64(to, Highest)
	to = binary.BigEndian.AppendUint64(to, math.Float64bits(1))
	next := 0
	for i, n := range h.counters() {
		switch empty := i - next; {
		case empty == 1:
			to = append(to, 0)
		case empty > 1:
			to = appendZigZag(to, -int64(empty))
		}
		to = appendZigZag(to, n)
		next = i + 1
	}
	if next == 0 {
		to = append(to, 0) // the HdrHistogram project's own writers always write a counter
	}
	binary.BigEndian.PutUint32(to[4:], uint32(len(to)-headerLen))
	return to
}

// appendZigZag is LEB128 of 64 bits in at most 9 bytes: the ninth holds 8 bits.
func appendZigZag(to []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for range 8 {
		if u < 0x80 {
			return append(to, byte(u))
		}
		to = append(to, byte(u)|0x80)
		u >>= 7
	}
	return append(to, byte(u))
}

// maxForeignCounters bounds what a header in a log can make the decoder allocate: 8 MB, 50
// times our own layout.
const maxForeignCounters = 1 << 20

// decode reads one encoded histogram, from whatever writer.
func decode(text string) (*Histogram, error) {
	if err := checkHeader(text); err != nil {
		return nil, err
	}
	foreign, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	return Import(foreign), nil
}

// checkHeader refuses what would make hdrhistogram-go allocate without bound, before it does.
func checkHeader(text string) error {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("the histogram is not base64: %w", err)
	}
	if len(data) < envelopeLen {
		return fmt.Errorf("the histogram ends after %d bytes", len(data))
	}
	if cookie := binary.BigEndian.Uint32(data); cookie&^cookieVariant != cookieCompressed&^cookieVariant {
		return fmt.Errorf("encoding %#x is not the compressed V2 encoding of HdrHistogram", cookie)
	}
	inflater, err := zlib.NewReader(bytes.NewReader(data[envelopeLen:]))
	if err != nil {
		return fmt.Errorf("the histogram cannot be inflated: %w", err)
	}
	var header [headerLen]byte
	if _, err := io.ReadFull(inflater, header[:]); err != nil {
		return fmt.Errorf("the histogram's header cannot be inflated: %w", err)
	}
	digits := int32(binary.BigEndian.Uint32(header[12:]))
	low, high := int64(binary.BigEndian.Uint64(header[16:])), int64(binary.BigEndian.Uint64(header[24:]))
	if digits < 0 || digits > 5 || high < 0 {
		return errors.New("the histogram's header is corrupt")
	}
	if n := countersFor(low, high, digits); n > maxForeignCounters {
		return fmt.Errorf("a histogram from %d to %d with %d digits has %d counters, more than the %d read here", low, high, digits, n, maxForeignCounters)
	}
	return nil
}

// countersFor is the number of counters of a layout, without allocating any.
func countersFor(low, high int64, digits int32) int64 {
	unit := int(math.Log2(float64(max(low, 1))))
	sub := max(int(math.Ceil(math.Log2(2*math.Pow10(int(digits))))), 1)
	n := int64(1)
	for top := math.Ldexp(1, unit+sub); top <= float64(high); top *= 2 {
		n++
	}
	return (n + 1) << (sub - 1)
}
