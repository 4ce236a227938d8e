package results

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// What the figures of a run can be split by.
const (
	ByProducer  = "producer"
	ByPartition = "partition"
)

// Part is one producer's share of a run, or one partition's: messages of the measured phase.
type Part struct {
	Producer  int    // number of the producer, from 0
	Topic     string // with Partition, of a partition
	Partition int32
	// Acked, Failed and Unknown are as in Counts. What had no outcome when the drain ended is known
	// to no part.
	Acked, Failed, Unknown int64
	// Latency is response, or service in a closed loop, of what was acked.
	Latency PartSeries
}

// PartSeries sums up the latencies of a part. Quantiles are known to 1.6 % (or 0.5 µs), the rest
// exactly.
type PartSeries struct {
	MinNs, MeanNs, P50Ns, P99Ns, P999Ns, MaxNs int64
}

// Parts says in short how the parts of a run differ. All of them stand in the file.
type Parts struct {
	By string `json:"by"` // ByProducer or ByPartition
	N  int    `json:"n"`
	// Acked are the fewest, the median and the most messages of a part; P99Ns the same of p99, over
	// the parts with messages.
	Acked Ends `json:"acked"`
	P99Ns Ends `json:"p99Ns"`
	// Worst names the part with the largest p99: "17", or "topic/3".
	Worst string `json:"worst,omitempty"`
	// File is the name of the CSV with all parts, relative to the result directory.
	File string `json:"file"`
}

// Ends are the smallest, the median and the largest of some figures.
type Ends struct {
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	Max    int64 `json:"max"`
}

func endsOf(values []int64) Ends {
	if len(values) == 0 {
		return Ends{}
	}
	slices.Sort(values)
	return Ends{values[0], values[(len(values)-1)/2], values[len(values)-1]}
}

// SumUp says how the parts differ.
func SumUp(by string, parts []Part) Parts {
	out := Parts{By: by, N: len(parts)}
	var acked, p99 []int64
	worst := int64(-1)
	for i := range parts {
		p := &parts[i]
		acked = append(acked, p.Acked)
		if p.Acked == 0 {
			continue
		}
		p99 = append(p99, p.Latency.P99Ns)
		if p.Latency.P99Ns > worst {
			worst, out.Worst = p.Latency.P99Ns, p.name(by)
		}
	}
	out.Acked, out.P99Ns = endsOf(acked), endsOf(p99)
	return out
}

func (p *Part) name(by string) string {
	if by == ByProducer {
		return strconv.Itoa(p.Producer)
	}
	return p.Topic + "/" + strconv.Itoa(int(p.Partition))
}

// WriteParts writes the parts of a finished run beside its other files, as
// "<point>-r<repeat>-producers.csv" or "-partitions.csv", and notes the name in run.Parts. An empty
// list writes nothing. The columns are producer, or topic and partition; acked, failed, unknown;
// and min_ms, mean_ms, p50_ms, p99_ms, p99.9_ms, max_ms of response (service in a closed loop),
// empty where nothing was acked.
func (d *Dir) WriteParts(point *Point, run *Run, by string, parts []Part) error {
	if len(parts) == 0 {
		return nil
	}
	base, err := fileBase(point, run)
	if err != nil {
		return err
	}
	name := base + "-" + by + "s.csv"
	if err := d.WriteFile(name, func(w io.Writer) error { return writeParts(w, by, parts) }); err != nil {
		return err
	}
	for i := range run.Parts {
		if run.Parts[i].By == by {
			run.Parts[i].File = name
			return nil
		}
	}
	return fmt.Errorf("results: the run has no summary by %s", by)
}

// WithoutFiles is the run with its figures alone, for a place where its files are not.
func (r Run) WithoutFiles() Run {
	r.Log, r.Timeline, r.Lags = "", "", ""
	r.Parts = slices.Clone(r.Parts)
	for i := range r.Parts {
		r.Parts[i].File = ""
	}
	return r
}

func writeParts(to io.Writer, by string, parts []Part) error {
	buffered := bufio.NewWriter(to)
	w := csv.NewWriter(buffered)
	head := []string{by}
	if by == ByPartition {
		head = []string{"topic", by}
	}
	err := w.Write(append(head, "acked", "failed", "unknown", "min_ms", "mean_ms", "p50_ms", "p99_ms", "p99.9_ms", "max_ms"))
	for i := 0; i < len(parts) && err == nil; i++ {
		err = w.Write(parts[i].cells(by))
	}
	if err != nil {
		return err
	}
	if w.Flush(); w.Error() != nil {
		return w.Error()
	}
	return buffered.Flush()
}

func (p *Part) cells(by string) []string {
	cells := []string{strconv.Itoa(p.Producer)}
	if by == ByPartition {
		cells = []string{p.Topic, strconv.Itoa(int(p.Partition))}
	}
	for _, n := range []int64{p.Acked, p.Failed, p.Unknown} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	l := p.Latency
	for _, ns := range []int64{l.MinNs, l.MeanNs, l.P50Ns, l.P99Ns, l.P999Ns, l.MaxNs} {
		text := ""
		if p.Acked > 0 {
			text = formatScaled(ns, 1e6)
		}
		cells = append(cells, text)
	}
	return cells
}
