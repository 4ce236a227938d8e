package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// topicWatch follows the leaders and in-sync replicas of the run's topics: what moved and moved back
// shows neither before nor after a run. It is pure: what was seen and when is what it is given.
type topicWatch struct {
	before []client.TopicDescription // as the run began
	last   [][]int32                 // leaders, by topic
	inSync [][]int                   // numbers of replicas in sync at the last look, by topic
	looked []int64                   // when that was; 0: as the run began
	moves  []run.Move
	kept   map[moving]int  // how many of moves are of a partition
	moved  []map[int]bool  // partitions seen with another leader than the time before
	shrunk []map[int]bool  // partitions seen with fewer replicas in sync than before
	events []results.Event // with instants on the engine's clock
}

func newTopicWatch(before []client.TopicDescription) *topicWatch {
	w := &topicWatch{before: before, looked: make([]int64, len(before)), kept: map[moving]int{}}
	for _, d := range before {
		w.last, w.inSync = append(w.last, d.Leaders), append(w.inSync, sizes(d.ISR))
		w.moved, w.shrunk = append(w.moved, map[int]bool{}), append(w.shrunk, map[int]bool{})
	}
	return w
}

// maxTopicEvents bounds the marks of a cluster whose leaders never rest.
const maxTopicEvents = 1000

// saw takes in what topic number i was like at an instant.
func (w *topicWatch) saw(i int, at int64, now client.TopicDescription) {
	moved, shrunk := 0, 0
	for p := range min(len(now.Leaders), len(w.last[i])) {
		if now.Leaders[p] != w.last[i][p] {
			w.moved[i][p] = true
			moved++
			w.note(run.Move{Topic: i, Partition: int32(p), After: w.looked[i], At: at})
		}
	}
	for p := range min(len(now.ISR), len(w.before[i].ISR)) {
		if len(now.ISR[p]) < len(w.before[i].ISR[p]) && !w.shrunk[i][p] {
			w.shrunk[i][p] = true
			shrunk++
		}
		if p < len(w.inSync[i]) && len(now.ISR[p]) < min(w.inSync[i][p], len(w.before[i].ISR[p])) {
			w.note(run.Move{Topic: i, Partition: int32(p), ISR: true, After: w.looked[i], At: at})
		}
	}
	w.last[i], w.inSync[i], w.looked[i] = now.Leaders, sizes(now.ISR), at
	w.mark(at, moved, now.Name, "leader", "%d partitions of %s have another leader")
	w.mark(at, shrunk, now.Name, "leader", "%d partitions of %s have lost replicas in sync")
}

// moving is what can happen to a partition.
type moving struct {
	topic     int
	partition int32
	isr       bool
}

// maxMoves is how many moves of a kind are kept of a partition. Of one that moves more often nobody asks when.
const maxMoves = 16

// note keeps a move.
func (w *topicWatch) note(m run.Move) {
	of := moving{m.Topic, m.Partition, m.ISR}
	n := w.kept[of]
	if n > maxMoves {
		return
	}
	if n == maxMoves {
		m.After, m.At = run.AnyTime, run.AnyTime
	}
	w.kept[of] = n + 1
	w.moves = append(w.moves, m)
}

func (w *topicWatch) mark(at int64, n int, topic, kind, text string) {
	if n > 0 && len(w.events) < maxTopicEvents {
		w.events = append(w.events, results.Event{AtNs: at, Kind: kind, Text: fmt.Sprintf(text, n, topic)})
	}
}

// topicWatcher asks for the topics over and over during the measured phase.
type topicWatcher struct {
	mu    sync.Mutex // guards watch
	watch *topicWatch
	stop  context.CancelFunc // nil unless it runs
	done  chan struct{}      // closed by its goroutine as it ends; stopWatch reads it
}

// Topics are asked for once a second; those of very many partitions less often, since the answer
// names every one.
const (
	topicPoll         = time.Second
	topicPollEach     = time.Millisecond // a partition
	topicsAtOnce      = 64               // questions that share a request
	topicsPollTimeout = 5 * time.Second
)

// startWatch begins to follow the topics.
func (t *Target) startWatch() {
	w := &t.topicWatcher
	if w.stop != nil || len(t.before) == 0 {
		return
	}
	partitions := 0
	for _, d := range t.before {
		partitions += len(d.Leaders)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.watch, w.stop, w.done = newTopicWatch(t.before), stop, make(chan struct{})
	go func() { // owned by the target; stopWatch ends it and waits
		defer close(w.done)
		t.watchTopics(ctx, max(topicPoll, time.Duration(partitions)*topicPollEach))
	}()
}

// stopWatch ends following the topics, and waits for that.
func (t *Target) stopWatch() {
	if w := &t.topicWatcher; w.stop != nil {
		w.stop()
		<-w.done
		w.stop = nil
	}
}

func (t *Target) watchTopics(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.lookAtTopics(ctx)
	}
}

// lookAtTopics asks for all topics once. A cluster that does not answer is no news of its topics.
func (t *Target) lookAtTopics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, topicsPollTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(topicsAtOnce)
	for i, name := range t.topics {
		g.Go(func() error { // Wait below waits for them, ctx bounds them
			d, err := t.admin.DescribeTopic(ctx, name)
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			t.topicWatcher.mu.Lock()
			defer t.topicWatcher.mu.Unlock()
			t.topicWatcher.watch.saw(i, t.o.Clock.Now(), d)
			return nil
		})
	}
	_ = g.Wait()
}
