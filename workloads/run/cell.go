package run

import (
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// The series a cell holds besides requests, in the order of seriesNames.
const (
	slotResponse = iota
	slotService
	slotDelay
	slotFailed
	slotE2E
	slotUnknown
	slots
)

var seriesNames = [slots]string{
	results.SeriesResponse, results.SeriesService, results.SeriesDelay,
	results.SeriesFailed, results.SeriesE2E, results.SeriesUnknown,
}

// cell is what one recorder knows of one window. It has one owner at a time: its recorder
// under the recorder's lock, then the timeline it is merged into.
type cell struct {
	series   [slots]*hist.Histogram // nil until touched
	requests []requests
	counts
	lateness int64 // largest
}

// counts are the messages of a cell.
type counts struct {
	acked, failed, unknown, received int64
	ackedBytes                       int64
	// answered are the messages whose acknowledgement came in the window, whenever they were due.
	answered, answeredBytes int64
}

// requests is one request series.
type requests struct {
	kind string
	hist *hist.Histogram
}

// at gives the histogram of a slot, made on first use.
func (c *cell) at(slot int) *hist.Histogram {
	h := c.series[slot]
	if h == nil {
		h = hist.New()
		c.series[slot] = h
	}
	return h
}

// request gives the histogram of a kind of request, made on first use. Kinds are few, and the
// same constants every time, so that comparing them is comparing pointers.
func (c *cell) request(kind string) *hist.Histogram {
	for i := range c.requests {
		if c.requests[i].kind == kind {
			return c.requests[i].hist
		}
	}
	h := hist.New()
	c.requests = append(c.requests, requests{kind, h})
	return h
}

// merge adds what another cell knows of the same window.
func (c *cell) merge(from *cell) {
	for slot, h := range from.series {
		if h != nil && h.Count() > 0 {
			c.at(slot).Merge(h)
		}
	}
	for _, r := range from.requests {
		if r.hist.Count() > 0 {
			c.request(r.kind).Merge(r.hist)
		}
	}
	c.acked += from.acked
	c.failed += from.failed
	c.unknown += from.unknown
	c.received += from.received
	c.ackedBytes += from.ackedBytes
	c.answered += from.answered
	c.answeredBytes += from.answeredBytes
	c.lateness = max(c.lateness, from.lateness)
}

// reset empties a cell and keeps its histograms' memory.
func (c *cell) reset() {
	for _, h := range c.series {
		if h != nil {
			h.Reset()
		}
	}
	for _, r := range c.requests {
		r.hist.Reset()
	}
	c.counts, c.lateness = counts{}, 0
}

// named lists the non-empty series by name.
func (c *cell) named() map[string]*hist.Histogram {
	m := make(map[string]*hist.Histogram)
	for slot, h := range c.series {
		if h != nil && h.Count() > 0 {
			m[seriesNames[slot]] = h
		}
	}
	for _, r := range c.requests {
		if r.hist.Count() > 0 {
			m[r.kind] = r.hist
		}
	}
	return m
}
