package report

import (
	"math"
	"strconv"
	"strings"
)

// digits formats v with n significant digits, without an exponent: 1.50, 12.3, 123, 1230.
// Rounding that carries (9.996 → 10.0) keeps the number of digits.
func digits(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	e := strconv.FormatFloat(v, 'e', n-1, 64)
	_, exp, _ := strings.Cut(e, "e")
	power, err := strconv.Atoi(exp)
	if err != nil {
		return e
	}
	return strconv.FormatFloat(v, 'f', max(0, n-1-power), 64)
}

// scaled formats v with n significant digits in the first of the units whose limit it stays
// under after rounding, so that 999.9 µs becomes 1.00 ms and never 1000 µs.
func scaled(v float64, n int, units []unit) string {
	for i, u := range units {
		s := digits(v/u.size, n)
		if i == len(units)-1 {
			return s + u.name
		}
		rounded, err := strconv.ParseFloat(s, 64)
		if err == nil && math.Abs(rounded) < units[i+1].size/u.size {
			return s + u.name
		}
	}
	return ""
}

type unit struct {
	size float64
	name string
}

var (
	timeUnits   = []unit{{1, " ns"}, {1e3, " µs"}, {1e6, " ms"}, {1e9, " s"}}
	countUnits  = []unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}}
	byteUnits   = []unit{{1, " B"}, {1e3, " kB"}, {1e6, " MB"}, {1e9, " GB"}, {1e12, " TB"}}
	memoryUnits = []unit{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}}
)

// duration formats nanoseconds with three significant digits: 250 µs, 1.25 ms, 12.3 s.
func duration(ns float64) string {
	if ns == 0 {
		return "0"
	}
	if math.Abs(ns) < 1e3 {
		return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
	}
	return scaled(ns, 3, timeUnits)
}

// quantity formats a rate or another large figure with four significant digits: 760.3, 9,998,
// 12.35k, 1.234M.
func quantity(v float64) string {
	switch whole := math.Round(v); {
	case v == whole && math.Abs(v) < 1e4:
		return count(int64(v))
	case math.Abs(v) >= 999.95 && math.Abs(whole) < 1e4:
		return count(int64(whole))
	}
	return scaled(v, 4, countUnits)
}

// short is quantity for the ticks of an axis: no zeros that say nothing.
func short(v float64) string {
	return trimZeros(scaled(v, 3, countUnits))
}

// shortDuration is duration for the ticks of an axis: 10 ms, not 10.0 ms.
func shortDuration(ns float64) string {
	return trimZeros(duration(ns))
}

// trimZeros drops the zeros that end the fraction of the number s begins with.
func trimZeros(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if end < 0 {
		end = len(s)
	}
	number, rest := s[:end], s[end:]
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + rest
}

// bytesOf formats a number of bytes in powers of ten.
func bytesOf(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e3 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B"
	}
	return scaled(v, 3, byteUnits)
}

// memory formats a number of bytes in powers of two.
func memory(v int64) string {
	return scaled(float64(v), 3, memoryUnits)
}

// perSecond formats bytes a second both ways people quote them: "10.2 MB/s", "9.77 MiB/s".
func perSecond(bytes float64) (mb, mib string) {
	return digits(bytes/1e6, 3) + " MB/s", digits(bytes/(1<<20), 3) + " MiB/s"
}

// count formats a whole number exactly, with a comma between groups of three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return sign + b.String()
}

// share formats a ratio as a percentage with two decimals. Rounding never reaches what was not
// reached: 0.99999 is 99.99 %, and 0.00001 is <0.01 %.
func share(v float64) string {
	s := strconv.FormatFloat(v*100, 'f', 2, 64)
	switch {
	case v < 1 && s == "100.00":
		s = "99.99"
	case v > 0 && s == "0.00":
		s = "<0.01"
	}
	return s + " %"
}

// plural is "1 run", "3 runs".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
