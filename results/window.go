package results

import "github.com/kbench/kbench/results/hist"

// Window is one interval of a run's timeline. Producer-side figures belong to the window of a
// message's due time (of its accepted time in a closed loop), arrivals and requests to the
// window they were received in.
type Window struct {
	StartNs  int64 // since the run's StartedAt
	LengthNs int64
	// Series are the histograms of this window by name; a series without an entry is empty.
	Series map[string]*hist.Histogram

	Attempted, Acked, Failed, Unknown, Received int64
	AckedBytes                                  int64 // key and value bytes of acked messages
	// Lag is the consumers' summed lag at the end of the window; -1 when unknown.
	Lag int64
	// InFlight is the number of messages accepted and not decided at the end of the window.
	InFlight int64
	// LatenessNs is the largest lateness of a pacer's waking up in the window.
	LatenessNs int64
	// RSSBytes is the resident size of the generator's process at the end of the window; 0 when unknown.
	RSSBytes int64
	// Faults are the kinds of those in force at some instant of the window, joined by +.
	Faults string
}
