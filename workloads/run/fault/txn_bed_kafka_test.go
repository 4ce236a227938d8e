//go:build kafka

package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run/verify"
)

// Transactions under faults on real Kafka with three nodes: each writer makes one transaction after
// the other, of numbered messages and a group's offsets, and commits or aborts it as the contract of
// the client's calls says; afterwards readers with read_committed have to see those whose commit was
// confirmed, whole, once and in order, and none of the others.

const (
	txnPartitions = 6
	txnSteps      = 8  // a transaction hands over this many runs of messages
	txnRun        = 12 // messages, in turn to every partition
	txnSize       = txnSteps * txnRun
	txnPause      = 20 * time.Millisecond // between two runs
)

// fate is what became of a transaction, as far as its writer was told.
type fate uint8

const (
	aborted   fate = iota
	committed      // confirmed
	unknown        // a commit was asked for, and whether it happened nobody can tell
)

// txn is one transaction.
type txn struct {
	first int64 // its messages are numbered from here on
	fate  fate

	mu  sync.Mutex
	out []outcome
}

type outcome struct {
	number    int64
	partition int32
	offset    int64
}

// Delivered notes outcomes.
func (x *txn) Delivered(batch []*client.ProducerMessage, d client.Delivery) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range batch {
		if d.Err == nil {
			x.out = append(x.out, outcome{m.Metadata.(int64), m.Partition, m.Offset})
		}
	}
}

// txnWriter is one transactional id and all that it was used for. Its fields belong to its goroutine,
// but for those said to be others' too.
type txnWriter struct {
	name   string
	number int
	topic  string
	id     string
	group  string // whose offsets are part of each transaction; empty: none
	cfg    *client.Config
	addrs  []string
	rand   *rand.Rand

	p      *client.AsyncProducer // nil: to be made
	next   int64
	all    []*txn
	anew   int            // producers that took over after one that had failed for good
	failed map[string]int // calls that failed, by what they were

	hold    atomic.Pointer[hold] // where somebody wants the next transaction to stand still
	ended   atomic.Int64         // transactions
	retries int64
}

// text is the value of message n.
func (w *txnWriter) text(n int64) string {
	return fmt.Sprintf("%d|%d|%s", w.number, n, strings.Repeat(strconv.FormatInt(n%97+10, 36), 20))
}

// record takes a message read apart; ok is false when it is not what this writer sent.
func (w *txnWriter) record(value []byte, partition int32, offset int64) (r verify.Record, ok bool) {
	rest, ok := bytes.CutPrefix(value, fmt.Appendf(nil, "%d|", w.number))
	digits, _, _ := bytes.Cut(rest, []byte("|"))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || err != nil || w.text(n) != string(value) || n%txnPartitions != int64(partition) {
		return r, false
	}
	return verify.Record{Number: n, Partition: partition, Offset: offset}, true
}

// write makes transactions until stop ends; what was begun is ended within ctx.
func (w *txnWriter) write(ctx context.Context, stop <-chan struct{}) error {
	for ctx.Err() == nil {
		select {
		case <-stop:
			return w.close(ctx)
		default:
		}
		if err := w.one(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *txnWriter) close(ctx context.Context) error {
	if w.p == nil {
		return nil
	}
	w.retries += w.p.Stats().Retries
	return w.p.Close(ctx)
}

// one makes a transaction. An error is not a fault's doing.
func (w *txnWriter) one(ctx context.Context) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	x := &txn{first: w.next}
	w.next += txnSize
	w.all = append(w.all, x)
	fine := w.fill(ctx, x)
	commit := w.rand.IntN(4) > 0
	var err error
	if fine && commit {
		x.fate, err = w.commit(ctx)
	} else {
		x.fate, err = w.abort(ctx, aborted)
	}
	w.ended.Add(1)
	return err
}

// begin opens a transaction, with a new producer where the last one was of no more use.
func (w *txnWriter) begin(ctx context.Context) error {
	for ctx.Err() == nil {
		if w.p == nil {
			p, err := client.NewAsyncProducer(w.addrs, w.cfg)
			if err != nil {
				w.note("new", err)
				continue
			}
			w.p = p
		}
		err := w.p.BeginTransaction(ctx)
		if err == nil {
			return nil
		}
		w.note("begin", err)
		if w.over(err) {
			w.replace()
		}
	}
	return ctx.Err()
}

// fill hands over the messages and the offsets; false when the transaction has failed with that.
func (w *txnWriter) fill(ctx context.Context, x *txn) bool {
	n := x.first
	for range txnSteps {
		run := make([]*client.ProducerMessage, txnRun)
		for i := range run {
			run[i] = &client.ProducerMessage{Topic: w.topic, Partition: int32(n % txnPartitions), Value: []byte(w.text(n)), Metadata: n}
			n++
		}
		if _, err := w.p.ProduceRun(ctx, run, x); err != nil {
			w.note("produce", err)
			return false
		}
		select {
		case <-time.After(txnPause): // it takes its time; nothing is synchronised by that
		case <-ctx.Done():
		}
	}
	if h := w.hold.Swap(nil); h != nil {
		_ = w.p.Flush(ctx) // the messages say what became of them
		close(h.reached)
		select {
		case <-h.release:
		case <-ctx.Done():
		}
	}
	if w.group == "" {
		return true
	}
	err := w.p.SendOffsetsToTransaction(ctx, []client.GroupOffset{{Topic: w.topic, Partition: 1, Offset: x.first}}, client.GroupMetadata{GroupID: w.group})
	if err != nil {
		w.note("offsets", err)
	}
	return err == nil
}

// commit asks until the outcome is known, or cannot become known any more.
func (w *txnWriter) commit(ctx context.Context) (fate, error) {
	for {
		err := w.p.CommitTransaction(ctx)
		if err == nil {
			return committed, nil
		}
		w.note("commit", err)
		without := aborted
		if errors.Is(err, client.ErrOutcomeUnknown) {
			without = unknown
		}
		switch {
		case w.over(err):
			w.replace()
			return without, nil
		case errors.Is(err, client.ErrTransactionFailed):
			return w.abort(ctx, without)
		case ctx.Err() != nil:
			return without, ctx.Err()
		}
	}
}

// abort asks until the transaction is ended, of which f is known.
func (w *txnWriter) abort(ctx context.Context, f fate) (fate, error) {
	for {
		err := w.p.AbortTransaction(ctx)
		if err == nil {
			return f, nil
		}
		w.note("abort", err)
		switch {
		case w.over(err):
			w.replace() // the next one aborts it
			return f, nil
		case ctx.Err() != nil:
			return f, ctx.Err()
		}
	}
}

// over says that the producer is of no more use.
func (w *txnWriter) over(err error) bool {
	return errors.Is(err, client.ErrProducerFenced) || errors.Is(err, client.ErrProducerFailed)
}

func (w *txnWriter) replace() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.retries += w.p.Stats().Retries
	_ = w.p.Close(ctx) // it has said already that it is of no use
	w.p = nil
	w.anew++
}

func (w *txnWriter) note(call string, err error) {
	kind := client.ErrorKind(err)
	w.failed[call+": "+kind]++
}

// txnBed is a cluster with transactional writers.
type txnBed struct {
	*realBed
	writers []*txnWriter
}

// txnKind is what a writer under test is set up to be.
type txnKind struct {
	name     string
	limit    client.Version
	inFlight int
	offsets  bool
}

var txnKinds = []txnKind{
	{"transactions v1, 5 in flight", client.Version{Major: 3, Minor: 9}, 5, false},
	{"transactions v1, 5 in flight, offsets", client.Version{Major: 3, Minor: 9}, 5, true},
	{"transactions v2, 1 in flight", client.Version{}, 1, false},
	{"transactions v2, 5 in flight, offsets", client.Version{}, 5, true},
}

func newTxnBed(t *testing.T) *txnBed {
	b := &txnBed{realBed: newRealBed(t, "txn")}
	for i, kind := range txnKinds {
		b.writers = append(b.writers, b.newTxnWriter(i, kind))
	}
	return b
}

func (b *realBed) newTxnWriter(number int, kind txnKind) *txnWriter {
	w := &txnWriter{
		name: kind.name, number: number, topic: b.topic(txnPartitions, nil), id: fmt.Sprintf("%s-id-%d", b.prefix, number),
		addrs: b.proxy.Addrs(), rand: rand.New(rand.NewPCG(1, uint64(number))), failed: map[string]int{},
	}
	if kind.offsets {
		w.group = w.id + "-group"
	}
	w.cfg = client.NewConfig()
	w.cfg.Version = kind.limit
	w.cfg.Producer.Idempotent, w.cfg.Net.MaxOpenRequests = true, kind.inFlight
	w.cfg.Producer.Transaction.ID, w.cfg.Producer.Partitioner = w.id, "manual"
	w.cfg.Producer.Flush.MaxMessages = 5 // several batches of a partition in flight
	w.cfg.Producer.Timeout, w.cfg.Net.ReadTimeout, w.cfg.Net.DialTimeout = 2*time.Second, 2*time.Second, 5*time.Second
	return w
}

// during has all writers at work while faults does what it does.
func (b *txnBed) during(faults func()) {
	stop := make(chan struct{})
	errs := make([]error, len(b.writers))
	var writing sync.WaitGroup
	for i, w := range b.writers {
		writing.Go(func() { errs[i] = w.write(b.ctx, stop) }) // ends with stop, which is closed below, or ctx
	}
	end := sync.OnceFunc(func() { close(stop); writing.Wait() })
	b.t.Cleanup(end)
	b.awaitEnded(2)
	faults()
	b.awaitEnded(2) // everybody is at work again
	end()
	for i, w := range b.writers {
		require.NoError(b.t, errs[i], w.name)
	}
}

// awaitEnded waits until each writer has ended n more transactions.
func (b *txnBed) awaitEnded(n int64) {
	for _, w := range b.writers {
		until := w.ended.Load() + n
		require.Eventually(b.t, func() bool { return w.ended.Load() >= until }, realPatience, 10*time.Millisecond, w.name)
	}
}

// hold is a transaction that stands still, its messages in the log, until it is released.
type hold struct {
	reached chan struct{} // closed by the writer
	release chan struct{} // closed by who asked for it
}

// strike has a writer stand still inside a transaction until the node that coordinates it has been
// ended.
func (b *txnBed) strike(turn int) (e ending, err error) {
	w := b.writers[turn%len(b.writers)]
	h := &hold{make(chan struct{}), make(chan struct{})}
	release := sync.OnceFunc(func() { close(h.release) })
	w.hold.Store(h)
	select {
	case <-h.reached:
	case <-time.After(2 * time.Minute):
		release()
		return e, fmt.Errorf("%s: no transaction was open", w.name)
	case <-b.ctx.Done():
		release()
		return e, b.ctx.Err()
	}
	at, err := b.coordinator(b.ctx, w.id)
	if err != nil {
		release()
		return e, err
	}
	return ending{how: "kill9", node: int(at), after: release}, nil
}

// coordinator is the node that coordinates the transactions of an id.
func (b *txnBed) coordinator(ctx context.Context, id string) (int32, error) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKeys = 1, []string{id}
	resp, err := b.admin.Brokers()[0].Request(ctx, req)
	if err != nil {
		return 0, err
	}
	found := resp.(*kmsg.FindCoordinatorResponse).Coordinators
	if len(found) != 1 || found[0].ErrorCode != 0 {
		return 0, fmt.Errorf("no coordinator of %s: %+v", id, found)
	}
	return found[0].NodeID, nil
}
