package results

import "time"

// Verification is what was found in a topic that was read back: the output of kbench verify in JSON.
type Verification struct {
	Schema int    `json:"schema"`
	Topic  string `json:"topic"`
	// Complete is false when reading ended before the ends of all partitions; what was found until
	// then says nothing about lost messages.
	Complete  bool      `json:"complete"`
	StartedAt time.Time `json:"startedAt"`
	ElapsedNs int64     `json:"elapsedNs"`
	Total     Findings  `json:"total"`
	// Runs are those that messages are of, in the order of their first due times.
	Runs       []VerifiedRun       `json:"runs"`
	Partitions []VerifiedPartition `json:"partitions"`
	// Producers are those with something wrong, the worst first, as many as are worth a look.
	Producers []VerifiedProducer `json:"producers"`
	// Examples are the first of each kind of finding.
	Examples []FindingExample `json:"examples"`
	// Notes are what to know before reading the figures.
	Notes      []string    `json:"notes"`
	Thresholds []Threshold `json:"thresholds"`
}

// VerificationSchema is the version of Verification.
const VerificationSchema = 1

// Findings count the messages of a topic.
type Findings struct {
	Messages int64 `json:"messages"` // in the log
	Distinct int64 `json:"distinct"` // those that carry an intact stamp, each once
	// Lost are numbers of a producer that are nowhere although a later message of it is there.
	Lost int64 `json:"lost"`
	// Removed are missing numbers that retention or compaction may have taken away.
	Removed    int64 `json:"removed"`
	Duplicated int64 `json:"duplicated"` // beyond the first of their number
	// Reordered came, as the first of their number, after a later message of their producer in their
	// partition.
	Reordered int64 `json:"reordered"`
	// Misplaced are in another partition than the partitioner that was named gives their key.
	Misplaced int64 `json:"misplaced"`
	// MisplacedUnchecked is true when no partitioner was named.
	MisplacedUnchecked bool  `json:"misplacedUnchecked,omitempty"`
	Corrupted          int64 `json:"corrupted"` // with a stamp, and not what the checksum was made for
	Unstamped          int64 `json:"unstamped"` // without one: nothing can be said of them
	// Unread are offsets that could not be read, since what the broker gave is damaged.
	Unread int64 `json:"unread"`
}

// VerifiedRun is what one run of kbench left in the topic.
type VerifiedRun struct {
	Tag       string    `json:"tag"` // in hexadecimal
	Producers int       `json:"producers"`
	FirstDue  time.Time `json:"firstDue"`
	LastDue   time.Time `json:"lastDue"`
	Findings
}

// VerifiedPartition is one partition's log.
type VerifiedPartition struct {
	Partition int32 `json:"partition"`
	// First and End are the offsets from which, and before which, was to be read.
	First int64 `json:"first"`
	End   int64 `json:"end"`
	Findings
	Error string `json:"error,omitempty"` // why the rest could not be read
}

// VerifiedProducer is one producer of one run.
type VerifiedProducer struct {
	Run      string `json:"run"`
	Producer uint32 `json:"producer"`
	Highest  int64  `json:"highest"` // number that was seen
	Findings
}

// FindingExample is one finding, to be looked at with other tools.
type FindingExample struct {
	Kind     string `json:"kind"` // "lost", "duplicated", "reordered", "misplaced", "corrupted", "unstamped", "unread"
	Run      string `json:"run,omitempty"`
	Producer uint32 `json:"producer"`
	// Number is the message's; of lost ones the first of several in a row, the last being To.
	Number int64 `json:"number"`
	To     int64 `json:"to,omitempty"`
	// Partition and Offset are where it is; −1 for lost ones, which are nowhere.
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Text      string `json:"text"`
}
