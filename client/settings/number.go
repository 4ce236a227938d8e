package settings

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// suffixes of numbers by unit. Bytes have no bare k or M: whether 64k is 64000 or 65536 would
// be a guess.
var (
	byteSuffixes = []suffix{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	}
	countSuffixes = []suffix{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}}
)

type suffix struct {
	text  string
	scale int64
}

// split takes the suffix off a number, as the field's unit allows.
func (f Field) split(text string) (number string, scale int64, err error) {
	known := countSuffixes
	switch {
	case f.Unit == "bytes":
		known = byteSuffixes
	case !strings.HasPrefix(f.Unit, "messages"):
		return text, 1, nil
	}
	for _, s := range known {
		if number, found := strings.CutSuffix(text, s.text); found {
			number = strings.TrimSpace(number)
			if _, err := parseFloat(number); err == nil {
				return number, s.scale, nil
			}
		}
	}
	if f.Unit == "bytes" && len(text) > 1 {
		if _, err := parseFloat(text[:len(text)-1]); err == nil && strings.ContainsAny(text[len(text)-1:], "kKmMgG") {
			return "", 0, fmt.Errorf("%q is ambiguous; write %skB (1000 bytes) or %sKiB (1024 bytes)",
				text, text[:len(text)-1], text[:len(text)-1])
		}
	}
	return text, 1, nil
}

// parseInt reads a whole number: decimal, 0x, 0o or 0b, underscores between digits allowed. A
// leading zero does not make it octal, as YAML 1.2 has it.
func parseInt(text string) (int64, error) {
	return strconv.ParseInt(decimal(text), base(text), 64)
}

// base is 10 unless the text has a prefix of its own.
func base(text string) int {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && strings.ContainsRune("xobXOB", rune(digits[1])) {
		return 0
	}
	return 10
}

// decimal takes out underscores that separate digits.
func decimal(text string) string {
	if base(text) == 0 || !strings.Contains(text, "_") || strings.Contains(text, "__") ||
		strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") {
		return text
	}
	return strings.ReplaceAll(text, "_", "")
}

// parseFloat reads a finite decimal number.
func parseFloat(text string) (float64, error) {
	if !startsLikeNumber(text) {
		return 0, strconv.ErrSyntax
	}
	if n, err := parseInt(text); err == nil {
		return float64(n), nil
	}
	if base(text) == 0 {
		return 0, strconv.ErrSyntax
	}
	f, err := strconv.ParseFloat(decimal(text), 64)
	if err == nil && (math.IsInf(f, 0) || math.IsNaN(f)) {
		err = strconv.ErrRange
	}
	return f, err
}

// ParseRate reads messages a second as a field of that unit does: 5000, 5k, 1.5M.
func ParseRate(text string) (float64, error) {
	number, scale, err := Field{Unit: "messages/s"}.split(text)
	if err != nil {
		return 0, err
	}
	x, err := parseFloat(number)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate; write it like 20000 or 20k", clip(text))
	}
	return x * float64(scale), nil
}

// scaledInt is number × scale when that is whole: 1.5M is 1500000, 1.5 is refused.
func scaledInt(number string, scale int64) (int64, error) {
	n, err := scaledWhole(number, scale)
	if err != nil {
		return 0, err
	}
	if !n.IsInt64() {
		return 0, strconv.ErrRange
	}
	return n.Int64(), nil
}

func scaledUint(number string, scale int64) (uint64, error) {
	n, err := scaledWhole(number, scale)
	if err != nil {
		return 0, err
	}
	if !n.IsUint64() {
		return 0, strconv.ErrRange
	}
	return n.Uint64(), nil
}

func scaledWhole(number string, scale int64) (*big.Int, error) {
	// A long exponent would make an integer of that many digits; nothing above 64 bits is used.
	f, err := parseFloat(number)
	if err != nil {
		return nil, err
	}
	if math.Abs(f) > 1e20 {
		return nil, strconv.ErrRange
	}
	if base(number) == 0 {
		n, err := parseInt(number)
		return new(big.Int).Mul(big.NewInt(n), big.NewInt(scale)), err
	}
	if math.Abs(f) < 1e-20 && f != 0 {
		return nil, strconv.ErrSyntax
	}
	r, ok := new(big.Rat).SetString(decimal(strings.TrimPrefix(number, "+")))
	if !ok {
		return nil, strconv.ErrSyntax
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if !r.IsInt() {
		return nil, strconv.ErrSyntax
	}
	return r.Num(), nil
}

// ParseBytes reads a whole number of bytes: "65536", "64KiB", "1MB".
func ParseBytes(text string) (int64, error) {
	number, scale, err := Field{Unit: "bytes"}.split(text)
	if err != nil {
		return 0, err
	}
	n, err := scaledInt(number, scale)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number of bytes; write it like 65536, 64KiB or 1MB", text)
	}
	return n, nil
}
