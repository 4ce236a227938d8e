package record

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchPayload is a value of the given size of which about half can be compressed away.
func benchPayload(size int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	out := make([]byte, 0, size+32)
	for len(out) < size {
		out = fmt.Appendf(out, `{"id":%d,"state":"shipped","sum":%d}`, rng.Uint64(), rng.IntN(1000))
	}
	return out[:size]
}

// benchAppend encodes records of one value size into batches of about 100 kB.
func benchAppend(b *testing.B, size int) {
	const full = 100 << 10
	value := benchPayload(size, 1)
	buf := make([]byte, 0, full+size+100)
	var w Builder
	w.Reset(buf, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		w.Append(2, nil, value, nil)
		if len(w.buf) >= full {
			w.Reset(buf, 1)
		}
	}
}

func BenchmarkAppend100(b *testing.B) { benchAppend(b, 100) }
func BenchmarkAppend1K(b *testing.B)  { benchAppend(b, 1000) }

// BenchmarkAppendKeyHeaders100 adds a key and two headers.
func BenchmarkAppendKeyHeaders100(b *testing.B) {
	const full = 100 << 10
	value, key := benchPayload(100, 1), []byte("user-0123456789")
	headers := []Header{{"trace", []byte("0123456789abcdef")}, {"kind", []byte("order")}}
	buf := make([]byte, 0, full+1000)
	var w Builder
	w.Reset(buf, 1)
	b.ReportAllocs()
	for b.Loop() {
		w.Append(2, key, value, headers)
		if len(w.buf) >= full {
			w.Reset(buf, 1)
		}
	}
}

func BenchmarkSizeWith100(b *testing.B) {
	value := benchPayload(100, 1)
	var w Builder
	w.Reset(nil, 1)
	for b.Loop() {
		w.SizeWith(2, nil, value, nil)
	}
}

// BenchmarkBaselineCopy is what Append cannot go below: the same bytes copied, per record.
func BenchmarkBaselineCopy(b *testing.B) {
	for _, size := range []int{100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			value := benchPayload(size, 1)
			buf := make([]byte, 100<<10)
			at := 0
			b.SetBytes(int64(size))
			for b.Loop() {
				at += copy(buf[at:], value)
				if at > len(buf)-size {
					at = 0
				}
			}
		})
	}
}

// BenchmarkBaselineCRC is what Finish cannot go below: CRC32C of the same batch.
func BenchmarkBaselineCRC(b *testing.B) {
	w := benchBatch(100 << 10)
	b.SetBytes(int64(w.Len()))
	for b.Loop() {
		CRC32C(w.Bytes()[atAttributes:])
	}
}

// benchBatch is a builder with records of 100 bytes up to the given size.
func benchBatch(size int) *Builder {
	w := new(Builder)
	w.Reset(make([]byte, 0, size+200), 1)
	for seed := uint64(0); w.Len() < size; seed++ {
		w.Append(2, nil, benchPayload(100, seed), nil)
	}
	return w
}

func BenchmarkFinish(b *testing.B) {
	for _, codec := range Codecs() {
		b.Run(codec.String(), func(b *testing.B) {
			w := benchBatch(100 << 10)
			c, err := NewCompressor(codec, DefaultLevel)
			if err != nil {
				b.Fatal(err)
			}
			batch, err := w.Finish(c, NoProducer)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(batch))/float64(w.Len()), "ratio")
			b.SetBytes(int64(w.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Finish(c, NoProducer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecompress(b *testing.B) {
	for _, codec := range Codecs()[1:] {
		b.Run(codec.String(), func(b *testing.B) {
			src := benchBatch(100 << 10).Bytes()[HeaderSize:]
			c, err := NewCompressor(codec, DefaultLevel)
			if err != nil {
				b.Fatal(err)
			}
			packed, err := c.Compress(src)
			if err != nil {
				b.Fatal(err)
			}
			var d Decompressor
			dst := make([]byte, 0, len(src)+4096)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = d.Decompress(dst, packed, codec, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadRecord is per record, with its share of Next and the CRC left out.
func BenchmarkReadRecord(b *testing.B) {
	section := benchBatch(100 << 10).Bytes()[HeaderSize:]
	rest := section
	var r Record
	var err error
	b.SetBytes(100)
	b.ReportAllocs()
	for b.Loop() {
		if rest, err = ReadRecord(rest, &r); err != nil {
			b.Fatal(err)
		}
		if len(rest) == 0 {
			rest = section
		}
	}
}

func BenchmarkNextCheckCRC(b *testing.B) {
	batch, err := benchBatch(100<<10).Finish(nil, NoProducer)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		got, _, err := Next(batch)
		if err == nil {
			err = got.CheckCRC()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
