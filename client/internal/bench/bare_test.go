package bench

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/fetch"
)

// bare is what reading costs at the least: one Fetch after the other over one connection, and of
// the answers only the batches' headers are looked at, to know where to go on. Nothing is checked,
// unpacked or handed over, and there is one buffer, which every answer overwrites.
type bare struct {
	conn    *conn.Conn
	version int16
	req     fetch.Request
	resp    fetch.Response
	buf     []byte
	call    conn.Call
	answer  chan error // one place; written by the call's Done, read by ask; nobody closes it
	body    []byte
}

// consumeBare needs a topic whose partitions are all led by one node, without gaps in their logs.
func consumeBare(ctx context.Context, j *job) error {
	b, err := newBare(ctx, j)
	if err != nil {
		return err
	}
	defer b.conn.Close(nil)
	p := progress{job: j}
	for j.done < j.N {
		n, err := b.round()
		if err != nil {
			return err
		}
		p.read(n)
	}
	p.finish()
	return nil
}

// bareVersion is the last version of Fetch that names topics by name.
const bareVersion = 12

func newBare(ctx context.Context, j *job) (*bare, error) {
	c, err := client.NewClientContext(ctx, j.bootstrap(), j.cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	partitions, err := c.Partitions(ctx, j.Topic)
	if err != nil {
		return nil, err
	}
	leader, err := c.Leader(ctx, j.Topic, partitions[0])
	if err != nil {
		return nil, err
	}
	set := c.Config()
	b := &bare{answer: make(chan error, 1)}
	b.req = fetch.Request{
		MaxWait: set.Consumer.MaxWait, MinBytes: int32(set.Consumer.MinBytes), MaxBytes: int32(set.Consumer.MaxBytes),
		Session: fetch.NoSession, Epoch: fetch.SessionEpoch, Topics: []fetch.Topic{{Name: j.Topic}},
	}
	for _, id := range partitions {
		b.req.Topics[0].Partitions = append(b.req.Topics[0].Partitions,
			fetch.Asked{Partition: id, LeaderEpoch: -1, MaxBytes: int32(set.Consumer.MaxPartitionBytes)})
	}
	if b.conn, err = conn.Open(ctx, leader.Addr(), conn.Options{ClientID: "bare", MaxResponseBytes: set.Net.MaxResponseBytes}); err != nil {
		return nil, err
	}
	if b.version, err = b.conn.Version(fetch.Key); err != nil {
		return nil, err
	}
	b.version = min(b.version, bareVersion)
	b.call = conn.Call{Key: fetch.Key, Version: b.version, Buffer: b.room, Body: make(net.Buffers, 1), Done: b.done}
	return b, nil
}

func (b *bare) room(n int) []byte {
	if n > len(b.buf) {
		b.buf = make([]byte, n)
	}
	return b.buf
}

func (b *bare) done(body []byte, _ conn.Times, err error) {
	b.body = body
	b.answer <- err
}

// round is one request and its answer: how many messages were in it. Partitions take turns in
// being first, for the first ones get the bytes where an answer has no room for all.
func (b *bare) round() (int64, error) {
	asked := b.req.Topics[0].Partitions
	first := asked[0]
	copy(asked, asked[1:])
	asked[len(asked)-1] = first
	if err := b.ask(); err != nil {
		return 0, err
	}
	var messages int64
	for i := range b.resp.Partitions {
		a := &b.resp.Partitions[i]
		k := slices.IndexFunc(asked, func(p fetch.Asked) bool { return p.Partition == a.Partition })
		if a.Code != 0 || k < 0 {
			return 0, fmt.Errorf("partition %d: error code %d, or not asked for", a.Partition, a.Code)
		}
		next := fetch.Measure(a.Records, asked[k].Offset).Next
		messages += next - asked[k].Offset
		asked[k].Offset = next
	}
	return messages, nil
}

func (b *bare) ask() error {
	b.call.Body[0] = b.req.Append(b.call.Body[0][:0], b.version)
	if err := b.conn.Acquire(context.Background()); err != nil {
		return err
	}
	if err := b.conn.Submit(&b.call); err != nil {
		return err
	}
	if err := <-b.answer; err != nil { // bounded by the connection's timeouts
		return err
	}
	return b.resp.Decode(b.body, b.version)
}
