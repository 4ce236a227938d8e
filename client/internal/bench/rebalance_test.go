package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
)

// The group that is rebalanced: so many members, each with a client of its own, and then one more. Every
// partition gets a message each tick, so that a gap between deliveries is a tick and what held them up.
const (
	groupMembers = 20
	groupTick    = 20 * time.Millisecond
	groupTicks   = 50          // at least, whatever the number of messages
	groupBound   = time.Minute // for the group to settle, and for the last messages
)

// rebalances makes the mode in which one member more joins, or, as a control, none.
func rebalances(balancer string, joins bool) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) (err error) {
		j.cfg.Consumer.Group.Balancers, j.cfg.Consumer.Group.CommitInterval = client.Balancers{balancer}, time.Second
		j.cfg.Producer.Partitioner, j.cfg.Producer.NewPartitioner = "manual", nil
		j.cfg.Producer.Flush.Frequency, j.cfg.Producer.Flush.MaxMessages = 0, 0
		o, err := j.owner(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.close(ctx)) }()
		ids, err := o.c.Partitions(ctx, j.Topic)
		if err != nil {
			return err
		}
		p := newParty(j, len(ids))
		defer func() { err = errors.Join(err, p.end()) }()
		for range groupMembers {
			if err := p.join(ctx); err != nil {
				return err
			}
		}
		if err := p.settle(ctx, len(ids)); err != nil {
			return err
		}
		if err := p.send(ctx, o, joins); err != nil {
			return err
		}
		return p.report()
	}
}

// party is the group, and what its members notice.
type party struct {
	job     *job
	readers []*client.Reader
	wg      sync.WaitGroup

	mu       sync.Mutex
	seen     []delivery // by partition
	count    int64
	measures bool
	failure  error
	changed  chan struct{} // one token: count or failure changed
}

// delivery is what is known of a partition.
type delivery struct {
	at     time.Time
	member int // that got the last one
	moved  bool
	gap    time.Duration // the longest
}

func newParty(j *job, partitions int) *party {
	return &party{job: j, seen: make([]delivery, partitions), changed: make(chan struct{}, 1)}
}

func (p *party) join(ctx context.Context) error {
	c, err := client.NewClientContext(ctx, p.job.bootstrap(), p.job.cfg)
	if err != nil {
		return err
	}
	r, err := c.NewReader(client.ReaderConfig{GroupID: p.job.Topic + "-group", Topics: []string{p.job.Topic}})
	if err != nil {
		return errors.Join(err, c.Close())
	}
	number := len(p.readers)
	p.readers = append(p.readers, r)
	p.wg.Add(1)
	// Owned by the party; ends when its reader closes; end waits.
	go func() {
		defer p.wg.Done()
		p.read(ctx, r, number)
		_ = c.Close() // the reader has closed by then, or failed
	}()
	return nil
}

func (p *party) read(ctx context.Context, r *client.Reader, number int) {
	buf := make([]client.Message, readBuffer)
	for {
		n, err := r.FetchBatch(ctx, buf)
		now := time.Now()
		p.mu.Lock()
		if err != nil && !errors.Is(err, io.EOF) && p.failure == nil {
			p.failure = err
		}
		for i := range buf[:n] {
			p.seen[buf[i].Partition].take(now, number, p.measures)
		}
		p.count += int64(n)
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
		if err := r.CommitMessages(ctx, buf[n-1]); err != nil {
			return // the next FetchBatch says why, if it matters
		}
	}
}

func (d *delivery) take(now time.Time, member int, measures bool) {
	if measures {
		d.moved = d.moved || d.member != member
		d.gap = max(d.gap, now.Sub(d.at))
	}
	d.at, d.member = now, member
}

// settle waits until all partitions have a reader, and every member its share.
func (p *party) settle(ctx context.Context, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, groupBound)
	defer cancel()
	for {
		held, fewest := 0, partitions
		for _, r := range p.readers {
			n := len(r.PartitionStates())
			held, fewest = held+n, min(fewest, n)
		}
		if held == partitions && fewest >= partitions/groupMembers {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the group did not settle: %d of %d partitions are held: %w", held, partitions, ctx.Err())
		case <-time.After(groupTick):
		}
	}
}

// send sends the messages, a quarter of them before anything is measured; when half are sent, the last
// member joins.
func (p *party) send(ctx context.Context, o owner, joins bool) error {
	f := new(firstFailure)
	ticks := max(int(p.job.N)/len(p.seen), groupTicks)
	start := time.Now()
	for tick := range ticks {
		run := make([]*client.ProducerMessage, len(p.seen))
		for i := range run {
			run[i] = &client.ProducerMessage{Topic: p.job.Topic, Partition: int32(i), Value: p.job.values.next()}
		}
		if _, err := o.p.ProduceRun(ctx, run, f); err != nil {
			return err
		}
		switch tick {
		case ticks / 4:
			p.mu.Lock()
			p.measures = true
			p.mu.Unlock()
		case ticks / 2:
			if joins {
				if err := p.join(ctx); err != nil {
					return err
				}
			}
		}
		time.Sleep(time.Until(start.Add(time.Duration(tick+1) * groupTick)))
	}
	if err := errors.Join(o.p.Flush(ctx), f.failed()); err != nil {
		return err
	}
	return p.await(ctx, int64(ticks*len(p.seen)))
}

// await waits until so many messages were delivered.
func (p *party) await(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, groupBound)
	defer cancel()
	for {
		p.mu.Lock()
		count, failure := p.count, p.failure
		p.mu.Unlock()
		if failure != nil || count >= n {
			p.job.done = count
			return failure
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages were delivered: %w", count, n, ctx.Err())
		}
	}
}

// report says the longest gap on partitions that stayed with their member, and on the others.
func (p *party) report() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stayed, moved time.Duration
	n := 0
	for _, d := range p.seen {
		if d.moved {
			n++
			moved = max(moved, d.gap)
			continue
		}
		stayed = max(stayed, d.gap)
	}
	if n == len(p.seen) {
		return errors.New("no partition stayed with its member")
	}
	p.job.say("gap", stayed)
	p.job.say("moved", n)
	p.job.say("gap/moved", moved)
	return nil
}

// end closes all members at once: one after the other each would wait for a rebalance.
func (p *party) end() error {
	failures := make([]error, len(p.readers))
	var closing sync.WaitGroup
	for i, r := range p.readers {
		closing.Go(func() { failures[i] = r.Close() })
	}
	closing.Wait()
	p.wg.Wait()
	return errors.Join(failures...)
}
