package synthetic

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// Script is what a Target does. The zero value answers everything at once.
type Script struct {
	// Latency is added to every answer; Capacity is what the server serves, messages a second,
	// in order; 0 is without limit. Exponential makes service times random with that mean.
	Latency     time.Duration
	Capacity    float64
	Exponential bool
	Seed        uint64
	// Cold is how much longer the latency is at the start of the measured phase, as a share, and Decay
	// the time in which that falls to a third of itself (1/e).
	Cold  float64
	Decay time.Duration
	// Toil is what a producer is itself at work for each message it hands over, one message after the other.
	Toil time.Duration
	// Stalls are in order and do not overlap.
	Stalls []Stall
	// Refuse is the share of messages that are refused, evenly spread, after the usual latency.
	Refuse float64
	// Buffer bounds the messages open at once over all producers; Send blocks at it. 0: none.
	Buffer int
	// Silent loses every answer from that time of the measured phase on; 0: none.
	Silent time.Duration

	// Partitions is how many there are; messages go to them in turn of their numbers. 0: 1.
	Partitions int32
	// Delivery is the time from an answer to the arrival at a consumer, and ClockOffset how far
	// the consumers' clock is ahead.
	Delivery, ClockOffset time.Duration
	// Lose, Duplicate, Swap and Corrupt make that happen to the arrival of every n-th message
	// by number; 0: never. Swap delivers a message behind its successor in the partition.
	Lose, Duplicate, Swap, Corrupt int64

	// Strange has a message without a stamp, of somebody else's, arrive with every n-th.
	Strange int64

	// Feed sends each consumer that many messages a second of someone else's.
	Feed float64

	// Groups that are delivered to before they have a member; what comes waits for one.
	Groups int
	// Deaf messages, every so many by number, are not delivered to group number DeafGroup, from 1.
	Deaf      int64
	DeafGroup int
	// Reading is how many messages a second a consumer receives at most, one by one; 0: any.
	Reading float64

	// EndTxn is what the end of a transaction takes once everything of it was answered. Every n-th commit of
	// a producer fails with FailCommit=n, and none is confirmed from that number on with LoseCommit.
	EndTxn                 time.Duration
	FailCommit, LoseCommit int
	// FailSend has Send say that the transaction has failed once every n messages were taken.
	FailSend int64
	// BeginErr and EndErr are errors of these calls.
	BeginErr, EndErr error

	// Errors of the calls themselves.
	OpenErr, OpenConsumerErr, SendErr, RunErr error
	// SendErrAfter lets that many messages through before SendErr, RunErrAfter before RunErr.
	SendErrAfter, RunErrAfter int64

	// Topics are told as they are; Moves are those of their partitions, with instants since the measured phase
	// began.
	Topics []results.Topic
	Moves  []run.Move
}

// ErrRefused is the outcome of refused messages.
var ErrRefused = errors.New("refused by the script")

// Target is a scripted run.Target.
type Target struct {
	script Script
	clock  run.Clock

	// turn holds one token: who has it is sending. Senders take and return it, in the order
	// they came, and it is never closed.
	turn chan struct{}
	// room holds a token when messages were answered while a sender waits. The answering
	// goroutine writes, the sender in turn reads, it is never closed.
	room chan struct{}
	// kick holds a token when something was queued. Senders write, answering reads.
	kick chan struct{}

	mu     sync.Mutex
	server server
	queue  []entry
	head   int
	open   int
	taken  int64
	origin int64 // the measured phase's begin; -1 before
	refuse float64

	groupsMu sync.Mutex // after mu, before a consumer's
	groups   []*audience
	killed   atomic.Int64

	stop context.CancelFunc
	done chan struct{} // closed when answering ended
}

// entry is one message waiting for its answer.
type entry struct {
	at      int64
	message *run.Message
	out     run.Outcomes
}

// New makes a target that follows script on clock.
func New(script Script, clock run.Clock) *Target {
	t := &Target{script: script, clock: clock, origin: -1,
		turn: make(chan struct{}, 1), room: make(chan struct{}, 1), kick: make(chan struct{}, 1), done: make(chan struct{})}
	t.turn <- struct{}{}
	if script.Groups > 0 {
		t.group(script.Groups - 1)
	}
	t.server = server{base: int64(script.Latency), cold: script.Cold, decay: float64(max(script.Decay, 1)),
		stalls: script.Stalls, origin: -1}
	if script.Capacity > 0 {
		t.server.service = 1e9 / script.Capacity
	}
	if script.Exponential {
		t.server.random = rand.New(rand.NewPCG(script.Seed, script.Seed))
	}
	return t
}

// Prepare starts the goroutine that answers. Finish stops it and waits for it.
func (t *Target) Prepare(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	go t.answer(ctx)
	return nil
}

// OpenProducer makes a producer.
func (t *Target) OpenProducer(_ context.Context, _ int, out run.Outcomes) (run.Producer, error) {
	if t.script.OpenErr != nil {
		return nil, t.script.OpenErr
	}
	return &producer{target: t, out: out, idle: make(chan struct{}, 1)}, nil
}

// Mark sets the instant stalls count from.
func (t *Target) Mark(_ context.Context, edge run.Edge) {
	if edge != run.MeasureStart {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.origin = t.clock.Now()
	t.server.origin = t.origin
}

// Report tells the scripted topics.
func (t *Target) Report(context.Context) (run.Report, error) {
	moves := slices.Clone(t.script.Moves)
	for i := range moves {
		moves[i].After, moves[i].At = moves[i].After+t.origin, moves[i].At+t.origin
	}
	return run.Report{Topics: t.script.Topics, Moves: moves}, nil
}

// Finish ends the target.
func (t *Target) Finish(context.Context) error {
	if t.stop != nil {
		t.stop()
		<-t.done
	}
	return nil
}

// Killed is how many consumers were killed.
func (t *Target) Killed() int64 { return t.killed.Load() }

// take queues a message, or reports that there is no room. Called by the sender in turn.
func (t *Target) take(m *run.Message, out run.Outcomes) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.script.Buffer > 0 && t.open >= t.script.Buffer {
		return false
	}
	t.open++
	t.taken++
	m.Partition = int32(m.Number % int64(max(t.script.Partitions, 1)))
	at := t.server.answer(m.Accepted)
	if t.refuse += t.script.Refuse; t.refuse >= 1-1e-9 {
		t.refuse--
		m.Err = ErrRefused
	}
	if s := t.script.Silent; s > 0 && t.origin >= 0 && m.Due-t.origin >= int64(s) {
		return true // never answered
	}
	if m.Err == nil {
		t.deliver(m, at)
	}
	t.queue = append(t.queue, entry{at, m, out})
	if len(t.queue)-t.head == 1 {
		poke(t.kick)
	}
	return true
}

// poke puts a token where none is.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// answer reports outcomes when their time has come, until ctx ends.
func (t *Target) answer(ctx context.Context) {
	defer close(t.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []entry
	for {
		due, wait := t.due(batch[:0])
		batch = due
		if len(batch) > 0 {
			report(batch)
			t.mu.Lock()
			t.open -= len(batch)
			t.mu.Unlock()
			poke(t.room)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.kick:
		case <-ctx.Done():
			return
		}
	}
}

// due takes what is to be answered by now, or tells how long to wait.
func (t *Target) due(batch []entry) ([]entry, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for t.head < len(t.queue) && t.queue[t.head].at <= now {
		batch = append(batch, t.queue[t.head])
		t.head++
	}
	if t.head == len(t.queue) {
		t.queue, t.head = t.queue[:0], 0
		return batch, time.Hour
	}
	if t.head > 1<<16 && t.head > len(t.queue)/2 {
		n := copy(t.queue, t.queue[t.head:])
		t.queue, t.head = t.queue[:n], 0
	}
	return batch, time.Duration(t.queue[t.head].at - now)
}

// report hands out runs of one producer that were answered at one instant.
func report(batch []entry) {
	var messages []*run.Message
	for len(batch) > 0 {
		first := batch[0]
		messages = messages[:0]
		for len(batch) > 0 && batch[0].at == first.at && batch[0].out == first.out {
			messages = append(messages, batch[0].message)
			batch = batch[1:]
		}
		accepted := first.message.Accepted // the message is the engine's again once it is decided
		first.out.Decided(messages, first.at, first.at)
		first.out.Request(results.SeriesProduce, accepted, first.at)
	}
}
