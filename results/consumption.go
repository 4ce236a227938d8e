package results

// Consumption is what is known of a run's consumers. In mode partition the readers that share out
// the partitions among them are a group as well, without a name and without rebalances.
type Consumption struct {
	// Lag is over all groups and partitions; nil when it was never known.
	Lag    *Lag    `json:"lag,omitempty"`
	Groups []Group `json:"groups"`
	// CatchUp is there when the consumers began on a backlog.
	CatchUp *CatchUp `json:"catchUp,omitempty"`
}

// Lag is how far consumers were behind the ends of their partitions, read at the end of every window
// of the measured phase. Partitions that nobody reads for the moment count.
type Lag struct {
	MaxMessages int64 `json:"maxMessages"`
	MaxAtNs     int64 `json:"maxAtNs"` // since the run's StartedAt
	// FinalMessages is that at the end of the measured phase.
	FinalMessages int64 `json:"finalMessages"`
	// GrowthPerSecond is how fast it grew over the windows of the measured phase: the slope of the
	// least-squares line through it. nil when it is known at fewer than two, and of groups.
	GrowthPerSecond *float64 `json:"growthPerSecond,omitempty"`
}

// Group is one group of consumers, which together receive everything once. The counts are those of
// Counts.
type Group struct {
	Name        string `json:"name,omitempty"`
	Received    int64  `json:"received"`
	Lost        int64  `json:"lost"`
	Duplicated  int64  `json:"duplicated"`
	Reordered   int64  `json:"reordered"`
	Corrupted   int64  `json:"corrupted"`
	NotReceived int64  `json:"notReceived,omitempty"`
	Lag         *Lag   `json:"lag,omitempty"`
	// Rebalances are the times, in the measured phase, that a partition went to another member or
	// had none; RebalanceMaxNs is the longest time until every partition had a reader again.
	Rebalances     int64 `json:"rebalances,omitempty"`
	RebalanceMaxNs int64 `json:"rebalanceMaxNs,omitempty"`
	// Commits are requests that committed offsets, StaleCommits those not sent since their partition
	// had gone to another member; of the whole run.
	Commits      int64 `json:"commits,omitempty"`
	StaleCommits int64 `json:"staleCommits,omitempty"`
}

// CatchUp is how consumers that began after the producers worked off what had been written.
type CatchUp struct {
	// BacklogMessages is the lag as they began, over all groups; -1 when it was not known.
	BacklogMessages int64 `json:"backlogMessages"`
	BeganNs         int64 `json:"beganNs"` // since the run's StartedAt
	// Reached is true when every partition was seen at lag zero, each at some instant since; TookNs
	// is the time until then, and MessagesPerSecond what all groups received meanwhile.
	Reached           bool    `json:"reached"`
	TookNs            int64   `json:"tookNs,omitempty"`
	MessagesPerSecond float64 `json:"messagesPerSecond,omitempty"`
	// Series names the producers' series that is summed up over the windows before the consumers
	// began, those in which they caught up, and those after; a part without messages is nil.
	Series string  `json:"series"`
	Before *Series `json:"before,omitempty"`
	During *Series `json:"during,omitempty"`
	After  *Series `json:"after,omitempty"`
}
