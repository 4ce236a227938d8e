package results

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Lags are how far a run's consumers were behind in each partition over time.
type Lags struct {
	Columns []LagColumn
	Rows    []LagRow
}

// LagColumn is a partition, as seen by a group. Group is its name, "group-1" and so on where groups
// have none, and empty where there is only one without a name.
type LagColumn struct {
	Group, Topic string
	Partition    int32
}

// LagRow is one reading.
type LagRow struct {
	EndNs    int64   // since the run's StartedAt
	Messages []int64 // by column; -1 when unknown
}

// String is the column's heading: "topic/3", with the group before it where there are several.
func (c LagColumn) String() string {
	text := c.Topic + "/" + strconv.Itoa(int(c.Partition))
	if c.Group != "" {
		text = c.Group + "/" + text
	}
	return text
}

// parseLagColumn reads a heading. Neither topics nor groups of kbench have a slash in their names.
func parseLagColumn(text string) (LagColumn, error) {
	parts := strings.Split(text, "/")
	if n := len(parts); n == 2 || n == 3 {
		if p, err := strconv.ParseInt(parts[n-1], 10, 32); err == nil && p >= 0 {
			return LagColumn{Group: strings.Join(parts[:n-2], ""), Topic: parts[n-2], Partition: int32(p)}, nil
		}
	}
	return LagColumn{}, fmt.Errorf("%.60q names no partition", text)
}

// WriteLags writes the lag by partition of a finished run beside its other files, as
// "<point>-r<repeat>-lag.csv", and sets run.Lags to the name: a row for each reading, with the time
// since the run's start in end_s and a column for each partition, empty where it is not known. nil
// writes nothing.
func (d *Dir) WriteLags(point *Point, run *Run, lags *Lags) error {
	if lags == nil {
		return nil
	}
	base, err := fileBase(point, run)
	if err != nil {
		return err
	}
	name := base + "-lag.csv"
	if err := d.WriteFile(name, func(w io.Writer) error { return writeLags(w, lags) }); err != nil {
		return err
	}
	run.Lags = name
	return nil
}

const lagTime = "end_s"

func writeLags(to io.Writer, lags *Lags) error {
	buffered := bufio.NewWriter(to)
	w := csv.NewWriter(buffered)
	cells := []string{lagTime}
	for _, c := range lags.Columns {
		cells = append(cells, c.String())
	}
	if err := w.Write(cells); err != nil {
		return err
	}
	for _, row := range lags.Rows {
		cells = append(cells[:0], formatScaled(row.EndNs, 1e9))
		for _, n := range row.Messages {
			text := ""
			if n >= 0 {
				text = strconv.FormatInt(n, 10)
			}
			cells = append(cells, text)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return errors.Join(w.Error(), buffered.Flush())
}

// ReadLags reads the run's lag by partition; nil when the run has none.
func (d *Dir) ReadLags(run *Run) (*Lags, error) {
	if run.Lags == "" {
		return nil, nil
	}
	f, err := d.open(run.Lags)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseLags(d.join(run.Lags), f)
}

// maxLagCells bounds a file of lags: partitions times readings.
const maxLagCells = 16 << 20

// ParseLags reads a file of lags; path is for errors, which are *FileError.
func ParseLags(path string, from io.Reader) (*Lags, error) {
	limited := &io.LimitedReader{R: from, N: maxTimeline}
	r := csv.NewReader(limited)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return nil, timelineError(path, err)
	}
	if header[0] != lagTime {
		return nil, &FileError{path, 1, fmt.Errorf("no column %s: no file of lags of kbench", lagTime)}
	}
	out := &Lags{}
	for _, text := range header[1:] {
		c, err := parseLagColumn(text)
		if err != nil {
			return nil, &FileError{path, 1, err}
		}
		out.Columns = append(out.Columns, c)
	}
	for {
		cells, err := r.Read()
		if limited.N <= 0 || (len(out.Rows)+1)*len(cells) > maxLagCells {
			return nil, &FileError{Path: path, Err: fmt.Errorf("larger than %d bytes or %d cells", maxTimeline, maxLagCells)}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, timelineError(path, err)
		}
		row, err := parseLagRow(cells)
		if err != nil {
			line, _ := r.FieldPos(0)
			return nil, &FileError{path, line, err}
		}
		out.Rows = append(out.Rows, row)
	}
}

func parseLagRow(cells []string) (row LagRow, err error) {
	if row.EndNs, err = parseScaled(cells[0], 1e9); err != nil {
		return row, err
	}
	row.Messages = slices.Repeat([]int64{-1}, len(cells)-1)
	for i, text := range cells[1:] {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return row, fmt.Errorf("%.40q is no number of messages", text)
		}
		row.Messages[i] = n
	}
	return row, nil
}
