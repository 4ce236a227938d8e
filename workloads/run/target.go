package run

import (
	"context"

	"github.com/kbench/kbench/results"
)

// Target is what the engine drives: a cluster through a client, or a scripted stand-in.
//
// The engine calls Prepare once, then opens producers and consumers, runs the phases, closes
// every producer and consumer, asks for Report, and calls Finish once, also when Prepare
// failed half-way. All waits are bounded by the context given.
type Target interface {
	// Prepare makes everything the run needs: topics with their leaders known, connections that
	// are shared. A failure names what to do about it.
	Prepare(ctx context.Context) error
	// OpenProducer makes producer number id (0-based). Outcomes of its messages go to out.
	OpenProducer(ctx context.Context, id int, out Outcomes) (Producer, error)
	// OpenConsumer makes a consumer, before the load or while it is on. What it receives goes to
	// in.
	OpenConsumer(ctx context.Context, who Member, in Arrivals) (Consumer, error)
	// Lags appends how far each group is behind in each partition, as last seen, also in those
	// that nobody reads at the moment. It costs no request. Safe for concurrent use between
	// Prepare and Finish.
	Lags(into []PartitionLag) []PartitionLag
	// Mark is called at the start and at the end of the measured phase, so that counters that
	// only ever grow (requests, bytes, retries) can be told apart by phase.
	Mark(ctx context.Context, edge Edge)
	// Report says what is known about topics, batches and the cluster after the run; filled
	// fields are copied into the result.
	Report(ctx context.Context) (Report, error)
	// Finish removes what Prepare made.
	Finish(ctx context.Context) error
}

// Settler is a Target whose consumers need a while until they read: members of a group.
type Settler interface {
	// Settle waits until every partition has a reader in each group, or ctx ends.
	Settle(ctx context.Context) error
}

// EndReader is a Target that can ask where partitions end, so that the next Lags are of now.
type EndReader interface {
	ReadEnds(ctx context.Context) error
}

// Member is one consumer among those of a run. All numbers count from 0.
type Member struct {
	ID    int // in the run
	Group int
	Place int // in the group, in the order of joining
}

// PartitionLag is the number of messages between a group's position in a partition and its end;
// −1 when unknown.
type PartitionLag struct {
	Group     int
	Topic     int32 // index of the topic among the run's topics
	Partition int32
	Messages  int64
}

// Edge is one end of the measured phase.
type Edge int

// The edges of the measured phase.
const (
	MeasureStart Edge = iota
	MeasureEnd
)

// Report is what a target tells about itself after a run.
type Report struct {
	Topics  []results.Topic
	Batches results.Batches
	// Errors counts failed requests and messages by kind.
	Errors map[string]int64
	// Events are marks on the time axis; their AtNs are instants on the engine's clock.
	Events []results.Event
	// Moves are the changes of leaders and in-sync replicas since the measured phase began, in order.
	Moves []Move
	// Groups are what is known of the consumers' groups beside what they received, by number; nil
	// where nobody joined any.
	Groups []results.Group
}

// Message is one message on its way through a target. It is made by Producer.NewMessages,
// filled by the engine, handed over in a run by Producer.Send, and comes back through
// Outcomes exactly once; then the engine uses it again.
//
// Instants are nanoseconds on the engine's clock (Clock), never wall-clock time.
type Message struct {
	Key, Value []byte // alias the payload source; valid until the outcome
	Number     int64  // the message's number in the whole workload, from 0
	// Due is when the schedule says; in a closed loop, when the engine began to fill the run.
	Due int64
	// Accepted is one reading per run handed over, taken by the engine just before Send. A
	// target that made a message wait for room sets it again, to when the room was there:
	// waiting for room is delay, not service.
	Accepted  int64
	Topic     int32 // index of the topic among the run's topics; filled by the target
	Partition int32 // filled by the target with the outcome
	Err       error // filled by the target with the outcome; nil means acked
	// Unknown is filled by the target beside Err: the message was written, and whether it is in
	// the log nobody knows. It counts as unknown then, not as failed.
	Unknown bool
	// Header is the stamp as the value of the kbench record header; nil when the stamp is in
	// the value or left out. It is valid until the outcome, as Key and Value are.
	Header []byte
	// Headers are those of the workload's payload, in order; their number and names never change.
	Headers []Header
	// Handle belongs to the target: its own form of the message, made once with it.
	Handle any

	// open is true from before Send until the outcome; guarded by the producer's pool.
	open bool
	seq  int64 // place among its producer's messages, warm-up included
}

// Header is one record header of a message. Its value is valid as long as the message's.
type Header struct {
	Name  string
	Value []byte
}

// HeaderName is the key of the record header that carries a message's stamp.
const HeaderName = "kbench"

// Producer takes runs of messages.
type Producer interface {
	// NewMessages makes n messages for this producer, each with its Handle set.
	NewMessages(n int) []*Message
	// Send hands over a run, in order. It blocks while the target's bounds are full, until ctx
	// ends. It returns how many of the run were taken: those, and only those, come back through
	// Outcomes. err is non-nil when fewer were taken than given; unless ctx ended, it ends the
	// whole run: what fails one message only is that message's outcome. The slice is the
	// engine's again when Send returns.
	Send(ctx context.Context, batch []*Message) (taken int, err error)
	// Flush waits until the outcome of everything taken so far is known, or ctx ends.
	Flush(ctx context.Context) error
	// Close ends the producer within ctx. Every message taken has its outcome by the time it
	// returns.
	Close(ctx context.Context) error
}

// Waiter is a Producer whose Send waits for outcomes. It is told once, before the first Send, which
// context ends that: the context of Send ends only the handing over, as an interrupt does, and what
// is on its way by then may still be decided.
type Waiter interface {
	// AwaitUntil gives the context that ends the waiting for outcomes.
	AwaitUntil(ctx context.Context)
}

// Outcomes takes what became of messages. One run of messages shares the instants.
// Implementations are called from the target's own goroutines, concurrently for different
// runs; they do not block and do not keep the slice.
type Outcomes interface {
	// Decided reports a run of messages that were decided together. Written is when their
	// request left (0 when unknown) and acked when the answer was read (with acks=0: when the
	// request was written), on the engine's clock.
	Decided(batch []*Message, written, acked int64)
	// Request reports one finished request of the kind named (results.SeriesProduce …).
	Request(kind string, written, read int64)
}

// Consumer receives until it is closed.
type Consumer interface {
	// Run receives until ctx ends, handing runs to the Arrivals given when it was opened.
	// It returns nil when ctx ended; anything else ends the whole run, with that error.
	Run(ctx context.Context) error
	// Close ends the consumer within ctx.
	Close(ctx context.Context) error
}

// Killer is a Consumer that can die: it goes without a word to anybody, as a process does that
// was killed or a machine that lost its network.
type Killer interface {
	// Kill cuts every connection of the consumer, and lets it make no others. Run may fail from
	// then on; Close is still called.
	Kill()
}

// Arrival is one message received. Key, Value and Header alias the receive buffer and are
// valid during the call only.
type Arrival struct {
	Key, Value []byte
	// Header is the value of the kbench header of the message, nil without one.
	Header    []byte
	Partition int32
	Topic     int32 // index of the topic among the run's topics
	Offset    int64
	// TimestampMs is the record's timestamp, milliseconds since 1970.
	TimestampMs int64
}

// Arrivals takes what was received, from the consumer's goroutine, one run at a time. received
// is one clock reading for the run.
type Arrivals interface {
	Received(batch []Arrival, received int64)
	Request(kind string, written, read int64)
}

// Clock tells the engine's time: nanoseconds since an arbitrary origin, monotonic.
type Clock interface {
	Now() int64
}
