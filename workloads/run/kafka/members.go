package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// group is one consumer group of the run.
type group struct {
	name string

	mu      sync.Mutex // guards what follows
	cover   *coverage
	seats   []*seat
	readers []*client.Reader // of everybody who was ever opened
	changed chan struct{}    // closed and made anew by whoever changes cover; who settles reads
	commits int64            // of the members that are closed
	stale   int64
}

func newGroup(name string, partitions int) *group {
	return &group{name: name, cover: newCoverage(name, partitions), changed: make(chan struct{})}
}

// with changes what is known of the members.
func (g *group) with(change func(*coverage)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.cover)
	close(g.changed)
	g.changed = make(chan struct{})
}

// membership is what a consumer that is a member of a group has beside its reader.
type membership struct {
	group *group
	seat  *seat
	own   *client.Client // with connections of its own, as a process would have
	net   *network
}

// openMember makes a consumer that joins its group.
func (t *Target) openMember(ctx context.Context, who run.Member, in run.Arrivals) (run.Consumer, error) {
	m := &membership{group: t.groups[who.Group], seat: &seat{}, net: newNetwork(t.o.Config.Net.Dialer)}
	cfg := t.o.Config
	cfg.Net.Dialer = m.net.dial
	var err error
	if m.own, err = client.NewClientContext(ctx, t.o.Bootstrap, &cfg); err != nil {
		return nil, err
	}
	t.counters.join(m.own)
	c := &consumer{target: t, who: who, in: in, member: m}
	m.group.mu.Lock()
	m.group.seats = append(m.group.seats, m.seat)
	m.group.mu.Unlock()
	r, err := m.own.NewReader(client.ReaderConfig{
		GroupID: m.group.name, Topics: t.topics, StartOffset: t.groupStart(), OnFetch: c.fetched,
		CommitInterval: t.commitInterval(), OnAssigned: c.assigned, OnRevoked: c.revoked,
	})
	if err != nil {
		return nil, errors.Join(err, m.own.Close())
	}
	m.group.with(func(*coverage) { m.group.readers = append(m.group.readers, r) })
	c.readers = []*reading{{Reader: r, number: manyTopics}}
	t.board.join(c)
	return c, nil
}

// groupStart is where a group begins. Topics made for the run are read from their first message,
// which is the run's.
func (t *Target) groupStart() int64 {
	if d := &t.o.Definition; d.Topics.Existing() && d.Consumers.From == "run" {
		return client.LastOffset
	}
	return client.FirstOffset
}

// defaultCommitInterval is how often offsets are committed where the client's settings do not say.
const defaultCommitInterval = time.Second

// commitInterval is what the reader is given: a negative one commits at once.
func (t *Target) commitInterval() time.Duration {
	if t.o.Definition.Consumers.Commit != "interval" {
		return -1
	}
	if every := t.o.Config.Consumer.Group.CommitInterval; every > 0 {
		return every
	}
	return defaultCommitInterval
}

func (c *consumer) assigned(_ int32, parts []client.TopicPartition) {
	now := c.target.o.Clock.Now()
	c.member.group.with(func(cover *coverage) {
		if from, waited := cover.assigned(c.member.seat, now, parts); waited {
			c.in.Request(results.SeriesRebalance, from, now)
		}
	})
}

func (c *consumer) revoked(_ int32, parts []client.TopicPartition) {
	now := c.target.o.Clock.Now()
	c.member.group.with(func(cover *coverage) { cover.revoked(c.member.seat, now, parts) })
}

// commit commits what was received, as the workload says. What cannot be committed is received
// again, and counted then; a request that failed is counted here.
func (c *consumer) commit(ctx context.Context, r *reading, msgs []client.Message) {
	if c.member == nil || c.target.o.Definition.Consumers.Commit == "none" {
		return
	}
	err := r.CommitMessages(ctx, msgs...)
	var late *client.StaleCommitError
	if err != nil && ctx.Err() == nil && !errors.As(err, &late) {
		c.target.counters.failed(fmt.Errorf("commit: %w", err))
	}
}

// Kill cuts the consumer's connections and lets it make no more.
func (c *consumer) Kill() {
	c.ending.Store(true)
	if m := c.member; m != nil {
		m.net.cut()
		now := c.target.o.Clock.Now()
		m.group.with(func(cover *coverage) { cover.gone(m.seat, now) })
	}
}

// close ends the membership after the reader's: leaving takes requests, which ctx bounds by closing
// the client under them; the dead send none.
func (m *membership) close(ctx context.Context, r *client.Reader) error {
	if m.net.isCut() {
		err := m.own.Close()
		return errors.Join(err, r.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = m.own.Close() }) // below again, with its error
	defer stop()
	err := r.Close()
	s := r.Stats()
	m.group.mu.Lock()
	m.group.commits += s.Commits
	m.group.stale += s.StaleCommits
	m.group.mu.Unlock()
	if closed := m.own.Close(); !errors.Is(closed, client.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// settleWithin bounds the wait for the groups to settle. A cluster waits three seconds for members
// of a new group, and up to the rebalance timeout for members of an old one.
const settleWithin = 2 * time.Minute

// Settle waits until every partition has a reader in each group, or one of the readers has failed for good.
func (t *Target) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for _, g := range t.groups {
		if err := g.settle(ctx, steady(t.o.Config.Consumer.Group.HeartbeatInterval)); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for one group. Where some member could have a partition and has none, more may be
// coming: the group has to stand still for a while.
func (g *group) settle(ctx context.Context, still time.Duration) error {
	timer := time.NewTimer(still)
	defer timer.Stop()
	for {
		g.mu.Lock()
		ready, fair, changed := g.cover.ready(g.seats), g.cover.fair(g.seats), g.changed
		said, failure := g.cover.say(), g.failure()
		g.mu.Unlock()
		switch {
		case failure != nil:
			return failure
		case ready && fair:
			return nil
		}
		timer.Reset(still)
		select {
		case <-changed:
		case <-timer.C:
			if ready {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("%s after %s: %w", said, settleWithin, ctx.Err())
		}
	}
}

// failure is why one of the members is of no more use, if it is. Called with mu held.
func (g *group) failure() error {
	for _, r := range g.readers {
		if err := r.Err(); err != nil {
			return err
		}
	}
	return nil
}

// network makes a client's connections, and can be cut.
type network struct {
	dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  bool
}

func newNetwork(dialer func(ctx context.Context, network, addr string) (net.Conn, error)) *network {
	if dialer == nil {
		dialer = new(net.Dialer).DialContext
	}
	return &network{dialer: dialer, conns: map[net.Conn]bool{}}
}

var errCut = errors.New("the consumer was killed")

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.isCut() {
		return nil, errCut
	}
	conn, err := n.dialer(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return nil, errors.Join(errCut, conn.Close())
	}
	n.conns[conn] = true
	return &cable{Conn: conn, of: n}, nil
}

func (n *network) isCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over
}

// cut closes every connection, at once and without a word where the system can.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	for conn := range n.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	clear(n.conns)
}

// cable is a connection that its network forgets when it is closed.
type cable struct {
	net.Conn
	of *network
}

// Close closes the connection.
func (c *cable) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// prepareGroups names the groups, which are the run's own, and has those begin where the topic ends
// now that would otherwise begin where it ends later.
func (t *Target) prepareGroups(ctx context.Context) error {
	d := &t.o.Definition
	if d.Consumers.Mode != "group" {
		return nil
	}
	partitions := 0
	for _, n := range t.parts {
		partitions += int(n)
	}
	if d.Consumers.Group != "" {
		t.groups = append(t.groups, newGroup(d.Consumers.Group, partitions))
	}
	for i := len(t.groups); i < max(1, d.Consumers.Groups); i++ {
		t.groups = append(t.groups, newGroup(fmt.Sprintf("kbench-%s-%s-g%d", safe(d.Name), t.suffix, i+1), partitions))
	}
	if d.Consumers.StartAfter == 0 || t.groupStart() != client.LastOffset {
		return nil
	}
	for _, g := range t.groups {
		if err := t.plant(ctx, g.name); err != nil {
			return fmt.Errorf("having group %q begin where the topic ends: %w", g.name, err)
		}
	}
	return nil
}

// plant has a member join a group and leave it again: what the group has not committed yet is then
// committed as the ends of the partitions.
func (t *Target) plant(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	holds := make(chan struct{})
	var once sync.Once
	r, err := t.admin.NewReader(client.ReaderConfig{
		GroupID: name, Topics: t.topics, StartOffset: client.LastOffset, CommitInterval: -1,
		OnAssigned: func(int32, []client.TopicPartition) { once.Do(func() { close(holds) }) },
	})
	if err != nil {
		return err
	}
	select {
	case <-holds:
		return r.Close()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), r.Close())
	}
}

// reportGroups tells what is known of the groups beside what they received.
func (t *Target) reportGroups(r *run.Report) {
	for _, g := range t.groups {
		g.mu.Lock()
		r.Groups = append(r.Groups, results.Group{
			Name: g.name, Rebalances: g.cover.count, RebalanceMaxNs: g.cover.longest, Commits: g.commits, StaleCommits: g.stale,
		})
		r.Events = append(r.Events, g.cover.events...)
		g.mu.Unlock()
	}
}

// deleteGroups deletes the groups of the run. One with a member that was killed a moment ago cannot be;
// it goes when its member's session has run out and what it committed is gone with the topics. One that
// the workload names stays.
func (t *Target) deleteGroups(ctx context.Context) error {
	if t.o.Definition.Consumers.Group != "" {
		return nil
	}
	var errs []error
	for _, g := range t.groups {
		err := t.admin.DeleteGroups(ctx, g.name)
		var kafka *client.KafkaError
		if len(t.made) > 0 && errors.As(err, &kafka) && kafka.Code == nonEmptyGroup {
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// nonEmptyGroup is a broker's code: the group still has members.
const nonEmptyGroup = 68
