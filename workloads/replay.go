package workloads

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// Bounds of a file of times.
const (
	maxReplayTimes = 20_000_000
	maxReplayLine  = 256
	maxReplay      = 30 * 24 * time.Hour
)

// ReadTimes reads the times of a replayed schedule, one a line, as seconds ("0.0125") or with a
// unit ("12.5ms"), since the start of the measured phase; they must not fall. Empty lines and those
// that begin with # are passed over. The times are in nanoseconds, at least one. An error names
// path and, of a line that cannot be read, its number.
func ReadTimes(path string, from io.Reader) ([]int64, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, maxReplayLine), maxReplayLine)
	var times []int64
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		at, err := parseTime(text)
		if err == nil && len(times) > 0 && at < times[len(times)-1] {
			err = fmt.Errorf("%.40s is before the time above it; sort the file", text)
		}
		if err == nil && len(times) == maxReplayTimes {
			err = fmt.Errorf("more than %d times", maxReplayTimes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		times = append(times, at)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes is no time", path, number+1, maxReplayLine)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(times) == 0:
		return nil, fmt.Errorf("%s: has no times; give one a line, in seconds since the start of the measured phase", path)
	}
	return times, nil
}

// parseTime reads one time. Digits are taken one by one, as a float has too few of them.
func parseTime(text string) (int64, error) {
	d := time.Duration(-1)
	if whole, part, _ := strings.Cut(text, "."); onlyDigits(whole) && onlyDigits(part) && whole+part != "" {
		const digits = 9
		seconds, err := strconv.ParseInt("0"+whole, 10, 64)
		ns, _ := strconv.ParseInt((part + strings.Repeat("0", digits))[:digits], 10, 64)
		if err != nil || seconds > math.MaxInt64/int64(time.Second)-1 {
			seconds = int64(maxReplay/time.Second) + 1 // refused below
		}
		d = time.Duration(seconds*int64(time.Second) + ns)
	} else if v, err := settings.ParseDuration(text); err == nil && v >= 0 {
		d = v
	}
	switch {
	case d < 0:
		return 0, fmt.Errorf("%.40q is no time: seconds (0.0125) or a duration with a unit (12.5ms) is needed", text)
	case d > maxReplay:
		return 0, fmt.Errorf("%.40s is beyond 30 days: times count from the start of the measured phase", text)
	}
	return int64(d), nil
}

func onlyDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// pathOf is where a file that a key names is looked for: beside the workload that names it, else (on
// the command line, in a sweep) where kbench was called.
func (c *checker) pathOf(key, path string) string {
	from := c.given[key].File
	if filepath.IsAbs(path) || from == "" || from != c.Definition.File {
		return path
	}
	return filepath.Join(filepath.Dir(from), path)
}

// replay reads the file of a replayed schedule.
func (c *checker) replay() {
	if c.Producers.Schedule.File == "" {
		c.add("producers.schedule.kind", "replay needs producers.schedule.file, a file of times")
		return
	}
	path := c.pathOf("producers.schedule.file", c.Producers.Schedule.File)
	if c.Definition.timesFrom != path {
		times, err := readTimesFile(path)
		if err != nil {
			c.add("producers.schedule.file", "%v", err)
			return
		}
		c.Definition.Times, c.Definition.timesFrom = times, path
	}
	c.Definition.Producers.Schedule.File = path
}

func readTimesFile(path string) ([]int64, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = file.Close() }() // only read
	return ReadTimes(path, file)
}
