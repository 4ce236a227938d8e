package plan

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// Estimate is what executing a plan takes.
type Estimate struct {
	Executions int
	// Messages and Bytes (keys and values) are those sent by the executions that have a rate
	// or a number of messages, warm-up included.
	Messages, Bytes int64
	// ClosedLoop counts the executions whose messages nobody can tell beforehand.
	ClosedLoop int
	// Time is warm-up and measured phases, with an allowance for topics and drain.
	Time time.Duration
}

// allowance is the time a run takes beside its phases: making topics, connecting, the usual
// drain. The drain's bound is much longer, and reached only when something is wrong.
const allowance = 2 * time.Second

func (p *Plan) estimate() Estimate {
	e := Estimate{Executions: len(p.Order)}
	for _, execution := range p.Order {
		d := &p.Points[execution.Point].Definition
		n, known := messages(d)
		e.Messages = add(e.Messages, n)
		e.Bytes = add(e.Bytes, bytes(n, d))
		if !known {
			e.ClosedLoop++
		}
		e.Time = time.Duration(add(int64(e.Time), int64(length(d)+allowance)))
	}
	return e
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bytes are those of keys and values of n messages.
func bytes(n int64, d *workloads.Definition) int64 {
	values, keys, err := d.MessageBounds()
	if err != nil {
		return 0 // Check has said so, and the point is not in the order
	}
	total := (values.Mean + keys.Mean) * float64(n)
	if total >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(total))
}

// meanRate is the mean over the measured phase, and the rate of warm-up and cool-down, over all
// producers.
func meanRate(d *workloads.Definition) (measured, around float64) {
	measured, around = givenRate(d)
	return measured * d.Producers.Fleet(), around * d.Producers.Fleet()
}

// givenRate is meanRate as the definition has it.
func givenRate(d *workloads.Definition) (measured, around float64) {
	p := d.Producers
	if len(d.Phases.Named) > 0 {
		return namedRate(d)
	}
	switch p.Schedule.Kind {
	case "replay":
		if n := len(d.Times); n > 0 {
			mean := float64(n) / time.Duration(max(d.Times[n-1], 1)).Seconds()
			return mean, mean
		}
	case "ramp":
		return (p.Schedule.From + p.Rate) / 2, p.Rate
	case "step":
		sum, highest := 0.0, 0.0
		for _, rate := range p.Schedule.Steps {
			sum, highest = sum+rate, max(highest, rate)
		}
		return sum / float64(max(1, len(p.Schedule.Steps))), highest
	}
	return p.Rate, p.Rate
}

func namedRate(d *workloads.Definition) (mean, highest float64) {
	for _, s := range d.Phases.Named {
		rate := cmp.Or(s.Rate, d.Producers.Rate)
		mean += rate * float64(s.For) / float64(d.Phases.Length())
		highest = max(highest, rate)
	}
	return mean, highest
}

// messages are those of one run; known is false in a closed loop without a number.
func messages(d *workloads.Definition) (n int64, known bool) {
	if d.Producers.Count == 0 {
		return 0, true
	}
	measured, around := meanRate(d)
	if measured == 0 {
		return add(d.Producers.Messages, d.Phases.WarmUpMessages), d.Producers.Messages > 0
	}
	count := measured * measuredLength(d).Seconds()
	if n := float64(len(d.Times)) * d.Producers.Fleet(); n > 0 && n < count {
		count = n
	}
	if most := float64(d.Producers.Messages); most > 0 && (d.Phases.Length() == 0 || most < count) {
		count = most
	}
	count += float64(d.Phases.WarmUpMessages) + around*(d.Phases.WarmUp+d.Phases.CoolDown).Seconds()
	return int64(math.Round(count)), true
}

// measuredLength is that of the measured phase, as far as its length is given.
func measuredLength(d *workloads.Definition) time.Duration {
	if n := len(d.Times); n > 0 && d.Phases.Length() == 0 {
		return time.Duration(d.Times[n-1]) + 1
	}
	return d.Phases.Length()
}

// length is the time of the phases.
func length(d *workloads.Definition) time.Duration {
	measured := measuredLength(d)
	rate, around := meanRate(d)
	if rate > 0 && d.Producers.Messages > 0 {
		by := lasting(d.Producers.Messages, rate)
		if measured == 0 || by < measured {
			measured = by
		}
	}
	warmUp := d.Phases.WarmUp
	if around > 0 {
		warmUp += lasting(d.Phases.WarmUpMessages, around)
	}
	return warmUp + measured + d.Phases.CoolDown
}

// lasting is the time of n messages at a rate.
func lasting(n int64, rate float64) time.Duration {
	return time.Duration(min(float64(n)/rate*1e9, math.MaxInt64/8))
}

// String is the plan for people: points, order and estimate.
func (p *Plan) String() string {
	var b strings.Builder
	e := p.Estimate
	fmt.Fprintf(&b, "%s, %s, about %s", counted(len(p.Points), "point"), counted(e.Executions, "execution"), settings.FormatDuration(e.Time.Round(time.Second)))
	if e.Messages > 0 {
		fmt.Fprintf(&b, ", %d messages, %s", e.Messages, byteText(e.Bytes))
	}
	if e.ClosedLoop > 0 {
		fmt.Fprintf(&b, ", %d in a closed loop (as many messages as they manage)", e.ClosedLoop)
	}
	b.WriteByte('\n')
	if text := p.Design.String(); text != "" {
		b.WriteString(text + "\n")
	}
	for _, line := range p.loads() {
		b.WriteString(line + "\n")
	}
	b.WriteString("\nPoints:\n")
	for _, point := range p.Points {
		fmt.Fprintf(&b, "  %s  %s", point.ID, point.Label)
		if point.Skipped != "" {
			fmt.Fprintf(&b, "  (skipped: %s)", point.Skipped)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\nOrder (seed %d):\n", p.Seed)
	for i, execution := range p.Order {
		if i == 0 || execution.Repeat != p.Order[i-1].Repeat {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "  repeat %d:", execution.Repeat+1)
		}
		b.WriteString(" " + p.Points[execution.Point].ID)
	}
	b.WriteByte('\n')
	return b.String()
}

func byteText(n int64) string {
	value, unit := float64(n), 0
	names := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	for value >= 1000 && unit < len(names)-1 {
		value, unit = value/1000, unit+1
	}
	return fmt.Sprintf("%.3g %s", value, names[unit])
}
