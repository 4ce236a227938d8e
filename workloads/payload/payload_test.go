package payload

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// batch is what a producer would send: values of every step-th message, stamped if asked.
func batch(t testing.TB, s *Source, bytesWanted, step int) []byte {
	var out []byte
	for n := int64(0); len(out) < bytesWanted; n += int64(step) {
		value := s.Value(nil, n)
		if s.config.Stamped {
			s.Stamp(value, 3, n, 1_700_000_000_000_000_000+n*50_000)
		}
		out = append(out, value...)
	}
	return out
}

var zstdEncoder, _ = zstd.NewWriter(nil)

var codecs = map[string]func(t testing.TB, src []byte) int{
	"flate": func(t testing.TB, src []byte) int {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.DefaultCompression)
		require.NoError(t, err)
		_, _ = w.Write(src)
		require.NoError(t, w.Close())
		return b.Len()
	},
	"lz4": func(t testing.TB, src []byte) int {
		dst := make([]byte, lz4.CompressBlockBound(len(src)))
		var c lz4.Compressor
		n, err := c.CompressBlock(src, dst)
		require.NoError(t, err)
		if n == 0 {
			return len(src)
		}
		return n
	},
	"zstd": func(t testing.TB, src []byte) int {
		return len(zstdEncoder.EncodeAll(src, nil))
	},
	"snappy": func(t testing.TB, src []byte) int { return len(s2.EncodeSnappy(nil, src)) },
}

// TestT7Compressibility: what is asked is what codecs find, for batches as producers make them.
func TestT7Compressibility(t *testing.T) {
	sizes, lengths := []int{100, 256, 1024, 10_000}, []int{16 << 10}
	if os.Getenv("KBENCH_SOAK") == "1" {
		sizes, lengths = append(sizes, 300, 200_000), append(lengths, 256<<10)
	}
	for _, size := range sizes {
		for _, stamped := range []bool{false, true} {
			for _, asked := range []float64{0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95} {
				if asked > MaxCompressibility(size, stamped) {
					continue
				}
				s, err := New(Config{Size: size, Compressibility: asked, Stamped: stamped, Seed: 42})
				require.NoError(t, err)
				for name, codec := range codecs {
					for _, length := range lengths {
						if size > length {
							continue
						}
						src := batch(t, s, max(length, size), 6)
						got := 1 - float64(codec(t, src))/float64(len(src))
						within := 0.05
						if name == "snappy" {
							within = 0.08 // it codes matches in pieces of 64 bytes
						}
						assert.InDelta(t, asked, got, within, "%s: %d bytes, stamped %t, batch of %d", name, size, stamped, len(src))
					}
				}
			}
		}
	}
}

func TestMessagesDifferAndRepeat(t *testing.T) {
	for _, c := range []Config{{Size: 8}, {Size: 100, Compressibility: 0.9}, {Size: 100, Compressibility: 0.6, Stamped: true}, {Size: 40, Stamped: true}, {Size: 1000}} {
		c.Seed = 7
		s, err := New(c)
		require.NoError(t, err)
		again, err := New(c)
		require.NoError(t, err)
		c.Seed = 8
		other, err := New(c)
		require.NoError(t, err)
		seen := map[string]int64{}
		for n := range int64(50_000) {
			value := s.Value(nil, n)
			if c.Stamped {
				s.Stamp(value, 1, n, 5)
			}
			before, known := seen[string(value)]
			if known {
				t.Fatalf("%+v: messages %d and %d are the same", c, before, n)
			}
			seen[string(value)] = n
		}
		for n := int64(49_999); n > 49_900; n-- {
			require.Equal(t, s.Value(nil, n), again.Value(nil, n), "same seed")
			require.NotEqual(t, s.Value(nil, n), other.Value(nil, n), "another seed")
		}
	}
}

func TestValueUsesWhatIsGiven(t *testing.T) {
	s, err := New(Config{Size: 100, Compressibility: 0.5, Stamped: true, Keys: Keys{Kind: KeysUniform, Size: 10, N: 1000}})
	require.NoError(t, err)
	dst, key := make([]byte, 7, 128), make([]byte, 0, 16)
	value := s.Value(dst, 5)
	require.Len(t, value, 100)
	require.Same(t, &dst[:1][0], &value[0])
	require.Len(t, s.Value(make([]byte, 3), 5), 100)
	require.Equal(t, 0.0, testing.AllocsPerRun(100, func() {
		dst = s.Value(dst, 6)
		s.Stamp(dst, 1, 2, 3)
		key = s.Key(key, 6)
	}))
	empty, err := New(Config{})
	require.NoError(t, err)
	require.Empty(t, empty.Value(nil, 1))
	require.Nil(t, empty.Key(nil, 1))
	require.EqualValues(t, -1, empty.KeyIndex(1))
}

func TestStampRoundTrip(t *testing.T) {
	for _, flags := range []uint32{0, FlagScrambled, 1 << 8, 1<<8 | FlagScrambled} {
		rest, key := []byte("the rest of the value"), []byte("key")
		want := Stamp{Producer: 13_999, Number: -1, Due: math.MaxInt64, Flags: flags}
		var dst [StampSize]byte
		PutStamp(dst[:], want, key, rest)
		got, ok := ReadStamp(append(dst[:], rest...))
		require.True(t, ok)
		require.True(t, Verify(got, key, rest))
		want.Sum = got.Sum
		require.Equal(t, want, got)

		require.False(t, Verify(got, key, append(rest, 0)))
		require.False(t, Verify(got, nil, rest), "the key is summed up as well")
		for name, change := range map[string]func(*Stamp){
			"producer": func(s *Stamp) { s.Producer++ }, "number": func(s *Stamp) { s.Number++ },
			"due": func(s *Stamp) { s.Due++ }, "flags": func(s *Stamp) { s.Flags ^= 1 << 20 },
		} {
			other := got
			change(&other)
			require.False(t, Verify(other, key, rest), "%s altered", name)
		}
		rest[3] ^= 1
		require.False(t, Verify(got, key, rest))
		_, ok = ReadStamp(dst[:StampSize-1])
		require.False(t, ok, "too short")
		dst[1] ^= 1
		_, ok = ReadStamp(dst[:])
		require.False(t, ok, "not a stamp")
	}
	_, ok := ReadStamp(make([]byte, 100))
	require.False(t, ok)
}

func FuzzReadStamp(f *testing.F) {
	var dst [StampSize]byte
	PutStamp(dst[:], Stamp{Producer: 1, Number: 2, Due: 3, Flags: FlagScrambled}, nil, nil)
	f.Add(dst[:])
	PutStamp(dst[:], Stamp{Producer: 1, Number: 2, Due: 3}, nil, nil)
	f.Add(dst[:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, ok := ReadStamp(data)
		if !ok {
			return
		}
		if Verify(s, nil, data[StampSize:]) {
			var again [StampSize]byte
			PutStamp(again[:], s, nil, data[StampSize:])
			if !bytes.Equal(again[:], data[:StampSize]) {
				t.Fatal("a stamp that was read is written differently")
			}
		}
	})
}

func TestKeys(t *testing.T) {
	const n = 200_000
	for _, k := range []Keys{
		{Kind: KeysSequential, Size: 8, N: 1000}, {Kind: KeysUniform, Size: 3, N: 1000},
		{Kind: KeysZipf, Size: 20, N: 1000, Skew: 1.2}, {Kind: KeysZipf, Size: 20, N: 1 << 40, Skew: 1.01}, {Kind: KeysUniform, Size: 1, N: 1},
		{Kind: KeysZipf, Size: 8, N: 1000, Skew: 1}, {Kind: KeysZipf, Size: 8, N: 1000, Skew: 0.99}, {Kind: KeysUniform, N: 1000},
	} {
		t.Run(fmt.Sprintf("%s %d %v %d", k.Kind, k.N, k.Skew, k.Size), func(t *testing.T) {
			s, err := New(Config{Keys: k, Seed: 3})
			require.NoError(t, err)
			counts := map[int64]int{}
			for i := range int64(n) {
				index := s.KeyIndex(i)
				key := s.Key(nil, i)
				parsed, err := strconv.ParseInt(string(key), 10, 64)
				if err != nil || parsed != index || index < 0 || index >= k.N || k.Size > 0 && len(key) != k.Size || k.Size == 0 && string(key) != strconv.FormatInt(index, 10) {
					t.Fatalf("message %d: key %q, index %d", i, key, index)
				}
				counts[index]++
			}
			switch {
			case k.Kind == KeysZipf:
				sum := 0.0
				for rank := int64(1); rank <= min(k.N, 3_000_000); rank++ {
					sum += math.Pow(float64(rank), -k.Skew)
				}
				if k.N > 3_000_000 { // the rest of the sum by its integral
					sum += (math.Pow(3e6, 1-k.Skew) - math.Pow(float64(k.N), 1-k.Skew)) / (k.Skew - 1)
				}
				for _, rank := range []int64{1, 2, 3, 10, 30} {
					want := n * math.Pow(float64(rank), -k.Skew) / sum
					require.InDelta(t, want, counts[rank-1], 5*math.Sqrt(want), "rank %d", rank)
				}
			case k.N > 1:
				require.Len(t, counts, int(k.N))
				for index, c := range counts {
					require.InDelta(t, n/1000, c, 6*math.Sqrt(n/1000), "key %d", index)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for says, c := range map[string]Config{
		"size":                  {Size: -1},
		"between 0 and 0.9":     {Size: 10, Compressibility: math.NaN()},
		"0 and 0.95":            {Size: 10, Compressibility: 0.96},
		"no room for a":         {Size: 31, Stamped: true},
		"no kind of keys":       {Keys: Keys{Kind: "zipfian"}},
		"1 or more":             {Keys: Keys{Kind: KeysUniform, Size: 3}},
		"key size":              {Keys: Keys{Kind: KeysUniform, N: 3, Size: -1}},
		"need 4 bytes":          {Keys: Keys{Kind: KeysUniform, N: 1001, Size: 3}},
		"no kind of values":     {Kind: "poem"},
		"no distribution":       {Sizes: Sizes{Kind: "exponential"}},
		"the smallest first":    {Sizes: Sizes{Kind: SizesUniform, Min: 2, Max: 1}},
		"the deviation":         {Sizes: Sizes{Kind: SizesNormal, Max: 10}},
		"the mean size 20":      {Size: 20, Sizes: Sizes{Kind: SizesNormal, Max: 10, Deviation: 1}},
		"skew of zipf sizes":    {Sizes: Sizes{Kind: SizesZipf, Max: 10}},
		"at least one":          {Sizes: Sizes{Kind: SizesList}},
		"size 2 of the list":    {Sizes: Sizes{Kind: SizesList, List: []int32{1, -1}}},
		"a value of 31 bytes":   {Stamped: true, Sizes: Sizes{Kind: SizesUniform, Min: 31, Max: 100}},
		"no lines":              {Kind: KindLines},
		"no order of lines":     {Kind: KindLines, Lines: [][]byte{{1}}, Order: "backwards"},
		"no room for a stamp":   {Kind: KindTemplate, Stamped: true},
		"at least one field":    {Kind: KindJSON},
		"has no }}":             {Kind: KindTemplate, Template: "a {{seq"},
		"key 1 has 65537 bytes": {Keys: Keys{Kind: KeysUniform, Lines: [][]byte{make([]byte, MaxKeySize+1)}}},
		"headers: h: {{x}}":     {Headers: map[string]string{"h": "{{x}}"}},
		"a name needs 1":        {Headers: map[string]string{"": "x"}},
		"above 0":               {Keys: Keys{Kind: KeysZipf, N: 10, Size: 3}},
	} {
		_, err := New(c)
		require.ErrorContains(t, err, says, says)
		_, _, err = Measure(c)
		require.ErrorContains(t, err, says, says)
	}
}

// BenchmarkValue stands beside a plain copy of the same size.
func BenchmarkValue(b *testing.B) {
	for _, size := range []int{100, 1024, 16 << 10} {
		for _, compressibility := range []float64{0, 0.5} {
			s, err := New(Config{Size: size, Compressibility: compressibility, Seed: 1, Stamped: true})
			require.NoError(b, err)
			dst, src := make([]byte, size), make([]byte, size)
			b.Run(fmt.Sprintf("value/%d/%v", size, compressibility), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				n := int64(0)
				for b.Loop() {
					dst = s.Value(dst, n)
					n++
				}
			})
			if compressibility == 0 {
				b.Run(fmt.Sprintf("copy/%d", size), func(b *testing.B) {
					b.SetBytes(int64(size))
					for b.Loop() {
						copy(dst, src)
					}
				})
				b.Run(fmt.Sprintf("stamp/%d", size), func(b *testing.B) {
					b.SetBytes(int64(size))
					for b.Loop() {
						s.Stamp(dst, 1, 2, 3)
					}
				})
			}
		}
	}
	for _, kind := range []string{KeysSequential, KeysUniform, KeysZipf} {
		s, err := New(Config{Keys: Keys{Kind: kind, Size: 10, N: 1_000_000, Skew: 1.1}})
		require.NoError(b, err)
		key := make([]byte, 10)
		b.Run("key/"+kind, func(b *testing.B) {
			b.ReportAllocs()
			n := int64(0)
			for b.Loop() {
				key = s.Key(key, n)
				n++
			}
		})
	}
}
