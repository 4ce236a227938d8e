package results

import (
	"slices"
	"strings"
	"time"
)

// Run is one execution of a point.
type Run struct {
	Repeat int `json:"repeat"` // 0-based
	// Incomplete is true of a run that ended early, by an interrupt or an error; `kbench run --resume`
	// does it again.
	Incomplete bool `json:"incomplete,omitempty"`
	Order      int  `json:"order"` // 0-based place in the whole plan's order of execution
	// StartedAt is the instant due times count from: the start of the measured phase.
	StartedAt time.Time `json:"startedAt"`
	// ElapsedNs is the length of the measured phase, the denominator of every rate.
	ElapsedNs int64 `json:"elapsedNs"`
	// Loop is "open" (a rate was asked for) or "closed".
	Loop string `json:"loop"`
	// AckMeaning is "acked" or, with acks=0, "written": what the producer-side series end with.
	AckMeaning string            `json:"ackMeaning"`
	Counts     Counts            `json:"counts"`
	Rates      Rates             `json:"rates"`
	Series     map[string]Series `json:"series"`
	Generator  Generator         `json:"generator"`
	// Transactions are those of the producers; nil without any.
	Transactions *Transactions `json:"transactions,omitempty"`
	Verdict      Verdict       `json:"verdict"`
	Thresholds   []Threshold   `json:"thresholds"`
	// Errors counts failed messages and requests by kind, most frequent first in reports.
	Errors map[string]int64 `json:"errors,omitempty"`
	// Batches is what the producers' requests looked like.
	Batches Batches `json:"batches"`
	// Topics are the topics the run used, with their configuration and leaders.
	Topics []Topic `json:"topics,omitempty"`
	// Consumption is what is known of the consumers beside Counts; nil without any.
	Consumption *Consumption `json:"consumption,omitempty"`
	// Log and Timeline are the names of the run's HdrHistogram log and timeline CSV, relative
	// to the result directory, and Lags that of the lag by partition, empty when there is none.
	Log      string `json:"log"`
	Timeline string `json:"timeline"`
	Lags     string `json:"lags,omitempty"`
	// Faults are those of the workload, with what they did; see Fault.
	Faults []Fault `json:"faults,omitempty"`
	// Events are marks on the time axis: faults, rebalances, leader moves, pauses.
	Events []Event `json:"events,omitempty"`
	// Phases are the parts of the run in order, each with figures of its own: the warm-up, the
	// measured phase or the named phases it is made of, the cool-down.
	Phases []Phase `json:"phases,omitempty"`
	// Steady says where the figures became steady; nil when nobody asked.
	Steady *Steady `json:"steady,omitempty"`
	// LittlesLaw is a check of the figures against each other; nil where it says nothing.
	LittlesLaw *LittlesLaw `json:"littlesLaw,omitempty"`
	// Parts say how producers and partitions differed, where the workload asks for that.
	Parts []Parts `json:"parts,omitempty"`
}

// Names of the phases that are not named by the workload; they are the kinds as well.
const (
	PhaseWarmUp   = "warm-up"
	PhaseMeasure  = "measure"
	PhaseCoolDown = "cool-down"
)

// Phase is a part of a run with the figures of the messages that were due in it.
type Phase struct {
	Name string `json:"name"`
	// Kind is PhaseMeasure of what is in the run's figures, PhaseWarmUp or PhaseCoolDown of what is not.
	Kind     string `json:"kind"`
	StartNs  int64  `json:"startNs"` // since the run's StartedAt; negative in the warm-up
	LengthNs int64  `json:"lengthNs"`
	// Counts and Series are of messages that were due in the phase; arrivals and requests are of the
	// phase they came in, and those of warm-up and cool-down are not kept.
	Counts PhaseCounts       `json:"counts"`
	Rates  Rates             `json:"rates"`
	Series map[string]Series `json:"series"`
}

// PhaseCounts are those of Counts that can be told by phase.
type PhaseCounts struct {
	Attempted int64 `json:"attempted"`
	Acked     int64 `json:"acked"`
	Failed    int64 `json:"failed"`
	Unknown   int64 `json:"unknown"`
	Received  int64 `json:"received,omitempty"`
}

// Steady is what was found when a steady state was looked for.
type Steady struct {
	Found bool `json:"found"`
	// Figure is what was looked at, interval by interval.
	Figure string `json:"figure"`
	// AfterNs is how much of the load came before the steady state and is left out of the figures, as
	// the phase "settling"; the run's StartedAt is after it.
	AfterNs int64 `json:"afterNs,omitempty"`
	// Value is the mean of the figure in the steady state, of the second half when there was none,
	// and Drift by how much of it the figure still rose from beginning to end.
	Value float64 `json:"value"`
	Drift float64 `json:"drift"`
	// Reason is why none was found.
	Reason string `json:"reason,omitempty"`
}

// LittlesLaw holds messages in flight, counted as they go in and come out, against rate × mean
// service time, which come from the histograms. It is of the whole measured phase.
type LittlesLaw struct {
	// InFlight is the mean number of messages in flight. While a run of messages is being handed over
	// nobody knows how many of it are, so that there is a most as well.
	InFlight         float64 `json:"inFlight"`
	InFlightMost     float64 `json:"inFlightMost"`
	RateTimesService float64 `json:"rateTimesService"`
	// Holds is false when rate × service is out of this range by more than validity.maxLittleError and what
	// the ends of the phase can account for: then the figures contradict each other.
	Holds bool `json:"holds"`
}

// Counts are messages. Attempted = Acked + Failed + Unknown, always.
type Counts struct {
	Attempted  int64 `json:"attempted"`
	Acked      int64 `json:"acked"`
	Failed     int64 `json:"failed"`
	Unknown    int64 `json:"unknown"`
	Received   int64 `json:"received"`
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Reordered  int64 `json:"reordered"`
	Corrupted  int64 `json:"corrupted"`
	// Unstamped are messages that arrived in topics which others may write to and carry no stamp of kbench's:
	// not this run's, in no other count, and nothing can be said of them.
	Unstamped int64 `json:"unstamped,omitempty"`
	// NotReceived are acked messages that had not arrived when the wait for them ended. Whether
	// they are lost is not known; they are not in Lost.
	NotReceived int64 `json:"notReceived,omitempty"`
	// Unchecked says that messages carried nothing to tell lost, duplicated, reordered and
	// corrupted ones by, so that these counts say nothing.
	Unchecked bool `json:"unchecked,omitempty"`
	// NegativeE2E counts e2e values below zero: clocks that disagree. They are in the series.
	NegativeE2E int64 `json:"negativeE2e,omitempty"`
}

// Transactions are those that held messages of the measured phase, over all producers. Messages are of the
// measured phase and acked by the broker, by what became of their transaction: together Counts.Acked. (They
// are of the whole phase where a steady state was found in it.)
type Transactions struct {
	Committed int64 `json:"committed"`
	// Aborted are those that the workload has aborted.
	Aborted int64 `json:"aborted"`
	// Failed are those that had to be aborted since a message or a request of them had failed.
	Failed int64 `json:"failed"`
	// Unknown were open, or their end not confirmed, when the drain ended.
	Unknown           int64 `json:"unknown"`
	CommittedMessages int64 `json:"committedMessages"`
	AbortedMessages   int64 `json:"abortedMessages"` // of failed ones as well
	UnknownMessages   int64 `json:"unknownMessages"`
	// ReadCommitted says that the consumers were to receive what was committed, and nothing else.
	ReadCommitted bool `json:"readCommitted,omitempty"`
	// AbortedReceived counts what they received all the same of aborted transactions, over all groups and
	// of the whole run.
	AbortedReceived int64 `json:"abortedReceived"`
}

// All is how many there were.
func (t *Transactions) All() int64 { return t.Committed + t.Aborted + t.Failed + t.Unknown }

// Rates are per second of the measured phase and count acked messages only.
type Rates struct {
	MessagesPerSecond float64 `json:"messagesPerSecond"`
	// BytesPerSecond counts key and value bytes, before compression and framing.
	BytesPerSecond float64 `json:"bytesPerSecond"`
	// TargetMessagesPerSecond is the rate asked for; 0 in a closed loop.
	TargetMessagesPerSecond float64 `json:"targetMessagesPerSecond"`
	ReceivedPerSecond       float64 `json:"receivedPerSecond"`
}

// Series sums up one latency histogram: values in nanoseconds, quantiles to 0.2 %.
type Series struct {
	Count   int64 `json:"count"`
	MinNs   int64 `json:"minNs"`
	MeanNs  int64 `json:"meanNs"`
	P50Ns   int64 `json:"p50Ns"`
	P90Ns   int64 `json:"p90Ns"`
	P99Ns   int64 `json:"p99Ns"`
	P999Ns  int64 `json:"p999Ns"`
	P9999Ns int64 `json:"p9999Ns"`
	MaxNs   int64 `json:"maxNs"`
	// Clamped counts values above the range of the histogram, recorded at its end.
	Clamped int64 `json:"clamped"`
}

// Generator is what the load generator itself used during the measured phase.
type Generator struct {
	CPUNsPerMessage float64 `json:"cpuNsPerMessage"` // user + system, per acked message
	CPUCores        float64 `json:"cpuCores"`        // mean cores busy
	CPUAvailable    float64 `json:"cpuAvailable"`    // cores it may use
	MaxRSSBytes     int64   `json:"maxRssBytes"`
	GCPauseMaxNs    int64   `json:"gcPauseMaxNs"`
	GCPauseTotalNs  int64   `json:"gcPauseTotalNs"`
	GCCycles        int64   `json:"gcCycles"`
	StolenShare     float64 `json:"stolenShare"` // of all CPU time, by the hypervisor
	// PauseMaxNs is the longest time the whole process stood still, as seen by a thread that
	// only sleeps and reads the clock.
	PauseMaxNs    int64  `json:"pauseMaxNs"`
	LatenessP99   int64  `json:"latenessP99Ns"`           // of the pacer waking up
	LatenessMaxNs int64  `json:"latenessMaxNs,omitempty"` // the same
	Pacer         string `json:"pacer,omitempty"`         // sleep, nanosleep or spin; empty in a closed loop
	// BehindNs is for how long a producer was behind its schedule, on average: its next message was due already
	// when it had handed over the one before. BehindOwnNs is for how long of that it was at work itself, and
	// neither waiting nor held up by the client's bounds.
	BehindNs    int64 `json:"behindNs,omitempty"`
	BehindOwnNs int64 `json:"behindOwnNs,omitempty"`
	// HostCPUShare is how busy the whole machine was, of all its processors; 0 where that is not known.
	HostCPUShare float64 `json:"hostCpuShare,omitempty"`
	// CeilingPerSecond is what the generator can do for this load with no cluster behind it,
	// messages/s; 0 when that was not known. See Ceiling.
	CeilingPerSecond float64 `json:"ceilingPerSecond,omitempty"`
	AllocBytes       int64   `json:"allocBytes"`
	AllocObjects     int64   `json:"allocObjects"`
}

// Batches says what the producers' requests looked like from the start of the measured phase to the
// end of the drain.
type Batches struct {
	Requests           int64   `json:"requests"`
	Batches            int64   `json:"batches"`
	MessagesPerBatch   float64 `json:"messagesPerBatch"`
	MessagesPerRequest float64 `json:"messagesPerRequest"`
	BytesPerBatch      float64 `json:"bytesPerBatch"`
	CompressionRatio   float64 `json:"compressionRatio"` // uncompressed ÷ sent; 1 without a codec
	Retries            int64   `json:"retries"`          // batches sent again
	ThrottleNs         int64   `json:"throttleNs"`       // waited because brokers asked for it
}

// Topic is one topic as it stood before and after the run.
type Topic struct {
	Name              string            `json:"name"`
	Partitions        int32             `json:"partitions"`
	ReplicationFactor int16             `json:"replicationFactor"`
	Config            map[string]string `json:"config,omitempty"`
	LeadersBefore     []int32           `json:"leadersBefore,omitempty"`
	LeadersAfter      []int32           `json:"leadersAfter,omitempty"`
	ISRBefore         []int             `json:"isrBefore,omitempty"` // in-sync replicas per partition
	ISRAfter          []int             `json:"isrAfter,omitempty"`
	// LeadersMoved and ISRShrunk are partitions that had another leader, or fewer in-sync replicas
	// than before, at some moment of the run, though perhaps not after it. Topics are looked at once
	// a second.
	LeadersMoved int `json:"leadersMoved,omitempty"`
	ISRShrunk    int `json:"isrShrunk,omitempty"`
}

// Verdict says whether the measurement can be trusted. It never judges the cluster.
type Verdict struct {
	Valid    bool     `json:"valid"`
	Reasons  []string `json:"reasons"`  // why it is invalid; empty when valid
	Warnings []string `json:"warnings"` // what to know before quoting the figure
	// Generator are those of the reasons that are about the load generator or its machine, and in a closed
	// loop the warning that it was busy: the figures are theirs as much as the cluster's. Empty without any.
	Generator []string `json:"generator,omitempty"`
}

// GeneratorBound says whether the figures are the generator's or its machine's as much as the cluster's.
func (v *Verdict) GeneratorBound() bool {
	return len(v.Generator) > 0 || slices.ContainsFunc(v.Warnings, func(w string) bool { // of results without the field
		return strings.HasPrefix(w, GeneratorBound)
	})
}

// GeneratorBound is how the warning begins that a closed loop's generator was busy, and the reason that an
// open loop's could not keep to its schedule.
const GeneratorBound = "generator-bound"

// Threshold is one condition on a run's figures and whether it held.
type Threshold struct {
	Expression string `json:"expression"`
	// Value is the figure as printed, in the unit of the expression.
	Value string `json:"value"`
	Held  bool   `json:"held"`
}

// Event is a mark on a run's time axis.
type Event struct {
	AtNs       int64  `json:"atNs"` // since the run's StartedAt; negative during warm-up
	DurationNs int64  `json:"durationNs,omitempty"`
	Kind       string `json:"kind"` // "fault", "rebalance", "leader", "pause", "phase", "consumers"
	Text       string `json:"text"`
}
