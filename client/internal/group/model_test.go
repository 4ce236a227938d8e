package group

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/wire"
)

// coordinator is a model of Kafka's group coordinator, as far as members can tell: it collects
// JoinGroups until all members have sent one or the time for it is over, has the leader assign, and
// forgets who is silent.
type coordinator struct {
	now        time.Time
	generation int32
	phase      phase
	members    map[string]*registered
	leader     string
	until      time.Time // of the phase
	ids        int
}

type phase int8

const (
	empty phase = iota
	preparing
	completing
	settled
)

type registered struct {
	id      string
	actor   *actor
	join    Send // waiting for its answer, in preparing
	joining bool
	sync    Send
	syncing bool
	parts   []byte
	heard   time.Time
	req     *kmsg.JoinGroupRequest
}

// actor is a member with its driver.
type actor struct {
	name string
	m    *Classic
	dead bool
	held map[Partition]bool
	left bool
	cut  bool // its next answer is lost
}

type world struct {
	t      *rapid.T
	c      *coordinator
	actors []*actor
	set    Settings
	size   int32
}

func (w *world) run(a *actor) {
	for range 100 {
		o := a.m.Poll(w.c.now)
		if o.Err != nil {
			w.t.Fatalf("%s failed: %v", a.name, o.Err)
		}
		a.left = a.left || o.Left
		if o.Describe != nil {
			a.m.Described(w.c.now, o.Describe.Serial, map[string]Topic{"t": {Partitions: w.size}}, nil)
		}
		if o.Reconcile != nil {
			w.reconcile(a, o.Reconcile)
		}
		for _, s := range o.Send {
			w.c.take(a, s)
		}
		if o.Describe == nil && o.Reconcile == nil && len(o.Send) == 0 {
			return
		}
	}
	w.t.Fatalf("%s does not come to rest", a.name)
}

// reconcile holds what is wanted, and checks that nobody else does who has a right to.
func (w *world) reconcile(a *actor, r *Reconcile) {
	want := map[Partition]bool{}
	for _, t := range r.Hold {
		for _, id := range t.Partitions {
			want[Partition{t.Topic, id}] = true
		}
	}
	for p := range a.held {
		if !want[p] {
			delete(a.held, p)
		}
	}
	for p := range want {
		if a.held[p] {
			continue
		}
		for _, b := range w.actors {
			if b != a && b.held[p] && w.c.knows(b) {
				w.t.Fatalf("%s takes %v, which %s holds", a.name, p, b.name)
			}
		}
		a.held[p] = true
	}
	a.m.Held(w.c.now, r.Serial, r.Hold)
}

func (c *coordinator) knows(a *actor) bool {
	r := c.members[a.m.id]
	return r != nil && r.actor == a
}

func (c *coordinator) answer(a *actor, s Send, resp kmsg.Response) {
	if a.dead {
		return
	}
	if a.cut {
		a.cut = false
		a.m.Answered(c.now, s.Serial, nil, io.ErrUnexpectedEOF)
		return
	}
	a.m.Answered(c.now, s.Serial, resp, nil)
}

func (c *coordinator) take(a *actor, s Send) {
	switch req := s.Request.(type) {
	case *kmsg.JoinGroupRequest:
		c.join(a, s, req)
	case *kmsg.SyncGroupRequest:
		c.sync(a, s, req)
	case *kmsg.HeartbeatRequest:
		c.answer(a, s, beat(c.check(req.MemberID, req.Generation, true)))
	case *kmsg.LeaveGroupRequest:
		c.remove(req.MemberID)
		c.answer(a, s, kmsg.NewPtrLeaveGroupResponse())
	}
}

func (c *coordinator) check(id string, generation int32, beats bool) error {
	r := c.members[id]
	switch {
	case r == nil:
		return wire.ErrUnknownMemberID
	case generation != c.generation:
		return wire.ErrIllegalGeneration
	}
	r.heard = c.now
	if beats && c.phase != settled {
		return wire.ErrRebalanceInProgress
	}
	return nil
}

func (c *coordinator) join(a *actor, s Send, req *kmsg.JoinGroupRequest) {
	if req.MemberID == "" {
		c.ids++
		id := fmt.Sprintf("%s-%d", a.name, c.ids)
		c.members[id] = &registered{id: id, actor: a, heard: c.now}
		c.answer(a, s, refusedJoin(wire.ErrMemberIDRequired, id))
		return
	}
	r := c.members[req.MemberID]
	if r == nil {
		c.answer(a, s, refusedJoin(wire.ErrUnknownMemberID, ""))
		return
	}
	r.join, r.joining, r.heard, r.req, r.syncing = s, true, c.now, req, false
	if c.phase != preparing {
		c.prepare()
	}
	c.complete()
}

func (c *coordinator) prepare() {
	for _, r := range c.members {
		if r.syncing {
			r.syncing = false
			c.answer(r.actor, r.sync, refusedSync(wire.ErrRebalanceInProgress))
		}
	}
	c.phase, c.until = preparing, c.now.Add(time.Minute)
}

// complete begins the next generation once all have joined.
func (c *coordinator) complete() {
	if c.phase != preparing {
		return
	}
	late := !c.until.After(c.now)
	for _, id := range c.sorted() {
		if r := c.members[id]; !r.joining && late {
			delete(c.members, id)
		} else if !r.joining {
			return
		}
	}
	if len(c.members) == 0 {
		c.phase = empty
		return
	}
	c.generation++
	c.phase, c.until = completing, c.now.Add(time.Minute)
	ids := c.sorted()
	if c.members[c.leader] == nil {
		c.leader = ids[0]
	}
	var all []kmsg.JoinGroupResponseMember
	for _, id := range ids {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.ProtocolMetadata = id, c.members[id].req.Protocols[0].Metadata
		all = append(all, m)
	}
	protocol := c.members[ids[0]].req.Protocols[0].Name
	for _, id := range ids {
		r := c.members[id]
		r.joining, r.parts, r.heard = false, nil, c.now
		resp := joined(c.generation, id, c.leader, protocol)
		if id == c.leader {
			resp.Members = all
		}
		c.answer(r.actor, r.join, resp)
	}
}

func (c *coordinator) sync(a *actor, s Send, req *kmsg.SyncGroupRequest) {
	if err := c.check(req.MemberID, req.Generation, false); err != nil {
		c.answer(a, s, refusedSync(err))
		return
	}
	r := c.members[req.MemberID]
	switch c.phase {
	case preparing:
		c.answer(a, s, refusedSync(wire.ErrRebalanceInProgress))
		return
	case settled:
		c.give(r, s)
		return
	}
	r.sync, r.syncing = s, true
	if req.MemberID != c.leader {
		return
	}
	c.phase = settled
	for _, g := range req.GroupAssignment {
		if m := c.members[g.MemberID]; m != nil {
			m.parts = g.MemberAssignment
		}
	}
	for _, id := range c.sorted() {
		if m := c.members[id]; m.syncing {
			m.syncing = false
			c.give(m, m.sync)
		}
	}
}

func (c *coordinator) give(r *registered, s Send) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.MemberAssignment = r.parts
	r.heard = c.now
	c.answer(r.actor, s, resp)
}

func (c *coordinator) remove(id string) {
	r := c.members[id]
	if r == nil {
		return
	}
	delete(c.members, id)
	if r.joining {
		c.answer(r.actor, r.join, refusedJoin(wire.ErrUnknownMemberID, ""))
	}
	if r.syncing {
		c.answer(r.actor, r.sync, refusedSync(wire.ErrUnknownMemberID))
	}
	if len(c.members) == 0 {
		c.phase = empty
		return
	}
	if c.phase != preparing {
		c.prepare()
	}
	c.complete()
}

// tick lets time end sessions and phases.
func (c *coordinator) tick() {
	for _, id := range c.sorted() {
		r := c.members[id]
		if r == nil {
			continue // what came of another's removal
		}
		if waits := r.joining || r.syncing; r.actor.dead || !waits {
			if c.now.Sub(r.heard) > 30*time.Second {
				c.remove(id)
			}
		}
	}
	if c.phase == completing && !c.until.After(c.now) {
		c.prepare()
	}
	c.complete()
}

func (c *coordinator) sorted() (ids []string) {
	for id := range c.members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// pass lets time pass, in steps of what somebody waits for at most.
func (w *world) pass(d time.Duration) {
	for end := w.c.now.Add(d); w.c.now.Before(end); {
		w.c.now = w.c.now.Add(500 * time.Millisecond)
		w.c.tick()
		w.all()
	}
}

func (w *world) all() {
	for range 2 {
		for _, a := range w.actors {
			if !a.dead && !a.left {
				w.run(a)
			}
		}
	}
}

// TestClassicMembersAgree: whatever happens to members and their requests, no partition is taken
// by one while another one has a right to it, and once things are calm every partition is held.
func TestClassicMembersAgree(t *testing.T) {
	for _, balancer := range []string{"range", "cooperative-sticky", "sticky"} {
		t.Run(balancer, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { agree(t, balancer) })
		})
	}
}

func agree(t *rapid.T, balancer string) {
	w := &world{t: t, set: settings(balancer), size: 5, c: &coordinator{now: time.Unix(1000, 0), members: map[string]*registered{}}}
	living := func() (out []*actor) {
		for _, a := range w.actors {
			if !a.dead && !a.left {
				out = append(out, a)
			}
		}
		return out
	}
	someone := func(t *rapid.T) *actor {
		all := living()
		if len(all) == 0 {
			t.Skip("nobody is there")
		}
		return rapid.SampledFrom(all).Draw(t, "who")
	}
	begin := func() {
		a := &actor{name: fmt.Sprintf("m%d", len(w.actors)), m: NewClassic(w.set), held: map[Partition]bool{}}
		a.m.Subscribe(w.c.now, []string{"t"})
		w.actors = append(w.actors, a)
	}
	t.Repeat(map[string]func(*rapid.T){
		"join": func(t *rapid.T) {
			if len(living()) > 5 {
				t.Skip("enough")
			}
			begin()
			w.all()
		},
		"leave": func(t *rapid.T) {
			a := someone(t)
			a.held = map[Partition]bool{}
			a.m.Leave(w.c.now)
			w.all()
		},
		"die":    func(t *rapid.T) { someone(t).dead = true },
		"cut":    func(t *rapid.T) { someone(t).cut = true },
		"forget": func(t *rapid.T) { w.c.remove(someone(t).m.id); w.all() },
		"grow":   func(*rapid.T) { w.size = min(w.size+1, 9) },
		"pass": func(t *rapid.T) {
			w.pass(time.Duration(rapid.IntRange(1, 400).Draw(t, "tenths")) * 100 * time.Millisecond)
		},
	})
	if len(living()) == 0 {
		begin()
	}
	for _, a := range w.actors {
		a.cut = false
	}
	w.pass(3 * time.Minute)
	held := map[Partition]string{}
	for _, a := range living() {
		if !a.m.Status().Settled {
			t.Fatalf("%s is not settled: state %d", a.name, a.m.state)
		}
		for p := range a.held {
			if held[p] != "" {
				t.Fatalf("%v is held by %s and %s", p, held[p], a.name)
			}
			held[p] = a.name
		}
	}
	if len(held) != int(w.size) {
		t.Fatalf("%d of %d partitions are held: %v", len(held), w.size, held)
	}
	most, least := 0, int(w.size)
	for _, a := range living() {
		most, least = max(most, len(a.held)), min(least, len(a.held))
	}
	if most-least > 1 {
		t.Fatalf("held unevenly, %d to %d: %v", least, most, held)
	}
}
