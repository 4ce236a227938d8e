package workloads

import (
	"time"

	"github.com/kbench/kbench/client/settings"
)

// Bounds of faults: what is longer than an hour is no fault but a state.
const (
	mostFaults   = 1000
	longestFault = time.Hour
	leastBytes   = 1024 // a second; less than that is a stall
)

// faults are checked one by one, each at its own place in the list.
func (c *checker) faults() {
	if len(c.Faults) > mostFaults {
		c.add("faults", "has %d entries; %d is the most", len(c.Faults), mostFaults)
		return
	}
	items := c.given["faults"].Items()
	for i, f := range c.Faults {
		a := settings.Assignment{Key: "faults", Value: c.given["faults"]}
		if i < len(items) {
			a.Value = items[i]
		}
		c.fault(f, func(format string, args ...any) {
			c.problems = append(c.problems, a.Problem(f.String()+": "+format, args...))
		})
	}
}

// fault refuses what cannot happen.
func (c *checker) fault(f Fault, add func(format string, args ...any)) {
	format := settings.FormatDuration
	length := c.Phases.Length()
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"for", f.For}, {"delay", f.Delay}, {"jitter", f.Jitter}} {
		if d.value < 0 || d.value > longestFault {
			add("%s must be between 0 and %s", d.key, format(longestFault))
		}
	}
	switch {
	case f.At < 0:
		add("is before the measured phase begins")
	case length > 0 && f.At >= length && !c.mayChange("phases.duration", "phases.named", "faults"):
		add("the measured phase ends at %s", format(length))
	}
	for _, k := range faultKinds {
		for _, key := range k.needed {
			if k.kind == f.Kind && key == "for" && f.For == 0 {
				add("for must be above 0")
			}
		}
	}
	if f.Kind == FaultDelay && f.Delay == 0 {
		add("delay must be above 0")
	}
	if f.Kind == FaultBandwidth && f.BytesPerSecond < leastBytes {
		add("bytesPerSecond must be %d or more; kind stall holds everything", leastBytes)
	}
	if p := c.Topics.Partitions; f.Partition >= int32(p) && c.Topics.Name == "" && !c.mayChange("topics.partitions", "faults") {
		add("there are %d partitions, numbered from 0", p)
	}
}
