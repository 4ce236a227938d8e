package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
)

// TopicPartition names one partition of the cluster.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// membership is a reader's place in its group. What has to be done is decided by member, a state
// machine that only the loop goroutine touches; the driver here carries it out: requests, each in
// a goroutine of its own, what is held (reader_group_hold.go), topics (reader_group_topics.go) and
// commits (reader_commit.go).
type membership struct {
	r      *Reader
	set    GroupConfig
	key    coordinatorKey
	member group.Member // its protocol is chosen before it begins (reader_group_protocol.go)

	protocol atomic.Value // string: member's; the loop writes

	// life ends with the membership, or with the reader; workers obey it.
	life    context.Context
	end     context.CancelFunc
	workers sync.WaitGroup // the loop waits for them when life has ended
	events  chan event     // workers write, the loop reads, nobody closes
	closing chan struct{}  // closed by close: leave
	ended   chan struct{}  // closed by the loop when it has ended

	asked      chan struct{}   // one token: the application asks again; who fetches writes, the loop reads, nobody closes
	hooksOver  chan struct{}   // closed by hooksTimer: the user's functions are waited for no longer
	hooksTimer *time.Timer     // the loop's; nil until the member leaves
	attention  group.Attention // the loop's: whether the application asks for messages
	absence    absence         // the loop's

	joins, talks line // for requests that wait for the whole group, and for the others
	// suspects counts answers in a row that broke the protocol, by the request. Guarded by mu.
	suspects map[kmsg.Key]int

	turn chan struct{} // one place, held while a commit is on its way

	// What follows belongs to the loop.
	holding *holding  // the Reconcile carried out last; nil: none yet
	names   []string  // the topics found
	leaving bool      // Leave was called
	leaveBy time.Time // when to stop waiting for it
	began   time.Time // of the rebalance under way; zero: none

	// held belongs to the Reconcile that is being carried out; tag numbers assignments.
	held map[group.Partition]bool
	tag  int32

	mu      sync.Mutex
	status  group.Status
	changed chan struct{} // closed and made anew when status or err changes
	stuck   *HookError    // the user's function that was left to itself; nil: none
	err     error         // why there is no membership any more, or will not be; nil: there may be
	book    *group.Book
	ending  map[group.Partition]bool // being given up: no generation will come for them
	sizes   map[string]int32         // partitions that topics had when this member first saw them
}

// event is what a worker has to tell the member.
type event func(now time.Time)

func newMembership(r *Reader) *membership {
	cfg := &r.cfg
	set := cfg.group(r.consume.Group)
	m := &membership{
		r: r, set: set, key: coordinatorKey{coordinatorOfGroup, cfg.GroupID},
		events: make(chan event), closing: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
		suspects: map[kmsg.Key]int{},
		asked:    make(chan struct{}, 1), hooksOver: make(chan struct{}), attention: group.NewAttention(set.MaxPollInterval, time.Now()),
		turn: make(chan struct{}, 1), held: map[group.Partition]bool{}, tag: noAssignment, book: group.NewBook(),
		joins: newLine(), talks: newLine(), began: time.Now(),
	}
	m.life, m.end = context.WithCancel(r.life)
	if set.Protocol == protocolConsumer {
		m.take(protocolConsumer)
	} else { // auto: until it is known
		m.take(protocolClassic)
	}
	return m
}

// start begins. The reader's wg counts the loop.
func (m *membership) start() {
	m.r.wg.Add(1)
	// Owned by the reader; stopped by closing, a fatal error or life; Close waits.
	go m.loop()
	m.work(m.subscribe)
	if m.set.CommitInterval > 0 {
		m.work(m.commitPeriodically)
	}
}

// work runs a worker.
func (m *membership) work(do func()) {
	m.workers.Add(1)
	// Owned by the membership; obeys life; the loop waits.
	go func() {
		defer m.workers.Done()
		do()
	}()
}

// tell hands an event to the loop, unless there is none any more.
func (m *membership) tell(e event) {
	select {
	case m.events <- e:
	case <-m.life.Done():
	}
}

func (m *membership) loop() {
	defer m.r.wg.Done()
	defer close(m.ended)
	defer m.finish()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	closing := m.closing
	for {
		now := time.Now()
		look := m.attend(now)
		orders := m.poll(now)
		m.publish(m.member.Status())
		if m.carryOut(orders) {
			return
		}
		var wake <-chan time.Time
		if at := m.wakeAt(orders.Wake, look); !at.IsZero() {
			timer.Reset(time.Until(at))
			wake = timer.C
		}
		select {
		case e := <-m.events:
			e(time.Now())
		case <-wake:
		case <-m.asked:
		case <-closing:
			closing = nil
			m.leave()
		case <-m.life.Done():
			return
		}
	}
}

// wakeAt is the earliest of what the member and the look at the application ask for (zero: nothing),
// and of the end of leaving.
func (m *membership) wakeAt(wake, look time.Time) time.Time {
	if wake.IsZero() || !look.IsZero() && look.Before(wake) {
		wake = look
	}
	if m.leaving && (wake.IsZero() || m.leaveBy.Before(wake)) {
		return m.leaveBy
	}
	return wake
}

// carryOut does what the member wants. True: the membership has ended.
func (m *membership) carryOut(o group.Orders) bool {
	if o.Left || m.leaving && !time.Now().Before(m.leaveBy) {
		return true
	}
	if o.Err != nil && !m.leaving {
		m.fail(o.Err)
		m.leave()
	}
	for _, s := range o.Send {
		m.work(func() { m.send(s) })
	}
	if o.Describe != nil {
		m.work(func() { m.describe(*o.Describe) })
	}
	switch {
	case o.Reconcile == nil:
	case !m.leaving:
		m.reconcile(*o.Reconcile)
	case o.Reconcile.Lost:
		m.endAll()
	}
	return false
}

// publish tells who waits how the member stands, and times rebalances.
func (m *membership) publish(s group.Status) {
	switch {
	case !s.Settled && m.began.IsZero():
		m.began = time.Now()
	case s.Settled && !m.began.IsZero():
		took := time.Since(m.began)
		m.began = time.Time{}
		m.r.count(func(st *ReaderStats) {
			st.Rebalances++
			st.LastRebalance = took
			m.r.rebalanceTimes.record(took)
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status != s {
		m.status = s
		m.wakeLocked()
	}
}

func (m *membership) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// fail ends the membership for good: every Fetch and every commit returns err from now on.
func (m *membership) fail(err error) {
	m.r.errLog.Error("group membership ended", "group", m.r.cfg.GroupID, "error", err)
	m.mu.Lock()
	if m.err == nil {
		m.err = err
		m.wakeLocked()
	}
	m.mu.Unlock()
	m.r.fail(err)
}

// fatal is fail for workers.
func (m *membership) fatal(err error) {
	m.tell(func(time.Time) {
		m.fail(err)
		m.leave()
	})
}

// leaveWithin bounds the wait for the coordinator to let a member go; drainWithin, or the
// rebalance timeout where that is less, the wait for the user's functions, and that for its last commit.
const (
	leaveWithin = 3 * time.Second
	drainWithin = 15 * time.Second
)

// leave gives everything up and ends the membership. The member goes on meanwhile, so that its last
// commit is one of a member that lives: it may have to wait for the generation that can make it.
func (m *membership) leave() {
	if m.leaving {
		return
	}
	m.leaving = true
	m.leaveBy = time.Now().Add(2*m.lastWait() + leaveWithin)
	m.boundHooks()
	generation := m.status.Generation
	m.nextHolding(func(context.Context) {
		m.giveUp(m.life, group.Reconcile{Generation: generation}, true)
		m.tell(func(now time.Time) {
			m.member.Leave(now)
			m.leaveBy = now.Add(leaveWithin)
		})
	})
}

// finish ends everything that is left.
func (m *membership) finish() {
	m.end()
	m.boundHooks()
	m.workers.Wait()
	m.hooksTimer.Stop()
	m.joins.close()
	m.talks.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = errLeft // who waits to commit has seen the end of life
	}
}

// close leaves the group, and returns when that is done, within bounds. An error says that a
// function of the user's was left behind.
func (m *membership) close() error {
	close(m.closing)
	<-m.ended
	if stuck := m.stuckHook(); stuck != nil {
		return stuck
	}
	return nil
}

// send sends a request of the member's.
func (m *membership) send(s group.Send) {
	over := &m.talks
	if s.Long {
		over = &m.joins
	}
	resp, err := m.ask(m.life, over, s.Request, s.Timeout)
	m.tell(func(now time.Time) { m.member.Answered(now, s.Serial, resp, err) })
}

// GroupMetadata is what a transactional producer commits this reader's offsets with
// (AsyncProducer.SendOffsetsToTransaction): the member as the group last told it. Without a group it is empty.
func (r *Reader) GroupMetadata() GroupMetadata {
	if r.group == nil {
		return GroupMetadata{}
	}
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	s := r.group.status
	return GroupMetadata{GroupID: r.cfg.GroupID, MemberID: s.MemberID, GenerationID: s.Generation, InstanceID: s.InstanceID}
}

// partitionsOf is a set of partitions as the reader's users name them.
func partitionsOf(parts []group.Partition) []TopicPartition {
	out := make([]TopicPartition, len(parts))
	for i, p := range parts {
		out[i] = TopicPartition{p.Topic, p.ID}
	}
	return out
}
