package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/results/hist"
)

// piped runs a test on a virtual clock with a scripted coordinator on pipes, and a configuration by
// which members of its group reach it.
func piped(t *testing.T, c *coordination, test func(t *testing.T, cfg *Config)) {
	synctest.Test(t, func(t *testing.T) {
		c.addr, c.beat = "pipe:1", time.Second
		srv := rawserver.StartPipes(rawserver.Script{Handle: c.handle, Features: c.features})
		defer srv.Close()
		cfg := NewConfig()
		cfg.Consumer.MaxWait = time.Second
		cfg.Net.Dialer = func(context.Context, string, string) (net.Conn, error) {
			p, err := srv.Pipe()
			if err != nil {
				return nil, err
			}
			return newSendBuffer(p), nil
		}
		test(t, cfg)
	})
}

// puppet is a member that notes what it is told. What no test expects of it panics.
type puppet struct {
	group.Member
	answered  []int // serials
	errs      []error
	refused   []group.Identity
	held      []int // serials
	described map[string]group.Topic
}

func (p *puppet) Answered(_ time.Time, serial int, _ kmsg.Response, err error) {
	p.answered, p.errs = append(p.answered, serial), append(p.errs, err)
}
func (p *puppet) Refused(_ time.Time, who group.Identity, _ error) {
	p.refused = append(p.refused, who)
}
func (p *puppet) Held(_ time.Time, serial int, _ []assign.TopicPartitions) {
	p.held = append(p.held, serial)
}
func (p *puppet) Described(_ time.Time, _ int, topics map[string]group.Topic, err error) {
	p.described, p.errs = topics, append(p.errs, err)
}

// driven is the driver of a puppet, without its loop but for the events.
type driven struct {
	*coordination
	*membership
	t   *testing.T
	ctx context.Context
	is  *puppet
}

// drive runs a test of the driver on a virtual clock.
func drive(t *testing.T, c *coordination, cfg ReaderConfig, change func(*Config), test func(d *driven)) {
	piped(t, c, func(t *testing.T, config *Config) {
		if change != nil {
			change(config)
		}
		cl, err := NewClient([]string{c.addr}, config)
		require.NoError(t, err)
		cfg.GroupID = "g"
		r := &Reader{
			cfg: cfg, client: cl, consume: config.Consumer, byPlace: map[topicPartition]*partition{}, sources: map[*Broker]*source{},
			wakeDirector: make(chan struct{}, 1), ready: make(chan struct{}, 1), latency: hist.New(),
		}
		r.applySettings(cl.cfg)
		r.life, r.end = context.WithCancel(cl.life)
		m := newMembership(r)
		r.group = m
		d := &driven{coordination: c, membership: m, t: t, ctx: t.Context(), is: &puppet{}}
		m.member = d.is
		go func() { // ends with the membership's life
			for {
				select {
				case e := <-m.events:
					e(time.Now())
				case <-m.life.Done():
					return
				}
			}
		}()
		defer func() {
			m.end()
			m.workers.Wait()
			m.joins.close()
			m.talks.close()
			r.end()
			_ = cl.Close() // which a test may have done
		}()
		test(d)
	})
}

var in0, in1 = group.Partition{Topic: "in"}, group.Partition{Topic: "in", ID: 1}

// holds opens partitions as a new assignment does.
func (d *driven) holds(parts ...group.Partition) {
	d.tag++
	for _, p := range parts {
		d.held[p] = true
		d.book.Open(p, d.tag, -1)
	}
}

// marked marks an offset of a partition that is held.
func (d *driven) marked(p group.Partition, offset int64) group.Offset {
	o := group.Offset{Partition: p, Tag: d.tag, Offset: offset, Epoch: -1}
	d.membership.mu.Lock()
	defer d.membership.mu.Unlock()
	require.True(d.t, d.book.Mark(o))
	return o
}

// in puts the member into a generation, in which it can commit; 0: into none.
func (d *driven) in(generation int32) {
	d.membership.mu.Lock()
	defer d.membership.mu.Unlock()
	d.status = group.Status{Identity: group.Identity{MemberID: "me", Generation: generation}, Commits: generation > 0}
	d.wakeLocked()
}

// hangs runs do, which has to wait for something.
func (d *driven) hangs(do func() error) (ended chan error) {
	ended = make(chan error, 1)
	go func() { ended <- do() }()
	synctest.Wait()
	require.Empty(d.t, ended, "it waits")
	return ended
}

// now is what hangs gives, when whatever it waited for has come.
func (d *driven) now(ended chan error) error {
	d.t.Helper()
	synctest.Wait()
	require.Len(d.t, ended, 1, "it waits no longer")
	return <-ended
}

// committing answers OffsetCommit partition by partition.
func committing(code func(topic string, id int32) int16) func(rawserver.Request) *rawserver.Reply {
	return func(raw rawserver.Request) *rawserver.Reply {
		req, is := raw.Decode().(*kmsg.OffsetCommitRequest)
		if !is {
			return nil
		}
		resp := kmsg.NewPtrOffsetCommitResponse()
		for _, t := range req.Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				one := kmsg.NewOffsetCommitResponseTopicPartition()
				one.Partition, one.ErrorCode = p.Partition, code(t.Topic, p.Partition)
				topic.Partitions = append(topic.Partitions, one)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		reply := rawserver.Respond(raw, resp)
		return &reply
	}
}

// silent answers nothing to requests of key.
func silent(key kmsg.Key) func(rawserver.Request) *rawserver.Reply {
	return func(req rawserver.Request) *rawserver.Reply {
		if req.Key == int16(key) {
			return &rawserver.Reply{Delay: time.Hour}
		}
		return nil
	}
}

func holdIn(serial int, parts ...int32) group.Reconcile {
	w := group.Reconcile{Serial: serial, Generation: 3, Adopt: true}
	if len(parts) > 0 {
		w.Hold = []assign.TopicPartitions{{Topic: "in", Partitions: parts}}
	}
	return w
}

var errTest = errors.New("of the test")
