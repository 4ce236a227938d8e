package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// line is what a program printed, as figures: durations in nanoseconds, truth as 0 and 1.
type line map[string]float64

// parseLine reads every key=value in what a program printed; later ones win. Values are numbers,
// durations, true and false; a unit of B or /s is dropped. What is nothing of these is passed over.
func parseLine(printed string) line {
	l := line{}
	for token := range strings.FieldsSeq(printed) {
		key, text, found := strings.Cut(token, "=")
		if !found {
			continue
		}
		if v, err := parseValue(text); err == nil {
			l[key] = v
		}
	}
	return l
}

func parseValue(text string) (float64, error) {
	switch text {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d.Nanoseconds()), nil
	}
	for _, unit := range []string{"/s", "B"} {
		text = strings.TrimSuffix(text, unit)
	}
	return strconv.ParseFloat(text, 64)
}

// unit says how a figure is written.
type unit int

const (
	plain unit = iota
	nanoseconds
	perSecond
	inBytes
)

func (u unit) format(v float64) string {
	switch {
	case u == nanoseconds && v < 1000:
		return fmt.Sprintf("%.0f ns", v)
	case u == nanoseconds && v < 1e6:
		return fmt.Sprintf("%.1f µs", v/1e3)
	case u == nanoseconds:
		return fmt.Sprintf("%.1f ms", v/1e6)
	case u == perSecond:
		return fmt.Sprintf("%.3f M/s", v/1e6)
	case u == inBytes && v >= 1<<20:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case u == inBytes:
		return fmt.Sprintf("%.1f KiB", v/(1<<10))
	}
	return fmt.Sprintf("%.3f", v)
}
