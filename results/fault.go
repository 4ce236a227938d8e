package results

// Fault is one fault of the workload as it happened, and what it did to the load. Its figures are those
// of the windows of the measured phase, so that their length is the resolution of all times.
type Fault struct {
	Given string `json:"given"` // as in the workload
	Kind  string `json:"kind"`
	Text  string `json:"text"` // what was done, in words
	// AtNs is when it began, since the run's StartedAt, and DurationNs how long it lasted.
	AtNs       int64 `json:"atNs"`
	DurationNs int64 `json:"durationNs,omitempty"`
	// Skipped says why it did not happen; the rest is empty then.
	Skipped string `json:"skipped,omitempty"`
	// Series names the latency that is looked at: response, service in a closed loop, e2e where nothing
	// is produced.
	Series string `json:"series,omitempty"`
	// Before is the median over the windows before the fault that no earlier fault had touched; nil when
	// there is none, and then nothing is known of the recovery.
	Before *FaultBase `json:"before,omitempty"`
	// Recovered is true when the rate was back to RecoveredRateShare of that before and p99 to
	// RecoveredP99Factor times that before, for RecoveredWindows windows in a row. RecoverNs is the time
	// from the fault's begin to the begin of the first of these; 0 when it did not leave these bounds.
	Recovered bool  `json:"recovered"`
	RecoverNs int64 `json:"recoverNs"`
	// NotRecovered says why that is not known, or did not come to pass.
	NotRecovered string `json:"notRecovered,omitempty"`
	// Affected counts the messages that were due from the window of the fault's begin until it was over
	// and the load had recovered, and were slower than RecoveredP99Factor times the p99 before, failed, or
	// are of unknown outcome; FailedMessages are the last two alone.
	Affected       int64 `json:"affectedMessages"`
	FailedMessages int64 `json:"failedMessages"`
	// WorstP99Ns and LowestRate are of these windows.
	WorstP99Ns int64   `json:"worstP99Ns,omitempty"`
	LowestRate float64 `json:"lowestRate,omitempty"`
}

// FaultBase is what the load was like before a fault.
type FaultBase struct {
	MessagesPerSecond float64 `json:"messagesPerSecond"`
	P99Ns             int64   `json:"p99Ns"`
	Windows           int     `json:"windows"` // of which these are the medians
}

// What counts as recovered.
const (
	RecoveredRateShare = 0.95
	RecoveredP99Factor = 2
	RecoveredWindows   = 3 // fewer where the measured phase ends
)
