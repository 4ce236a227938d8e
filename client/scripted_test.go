package client

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
)

// scripted is a network of scripted brokers by address, over pipes, so that it works on a virtual
// clock. A function of the test plays all of them.
type scripted struct {
	t      testing.TB
	handle func(addr string, req rawserver.Request) rawserver.Reply

	mu      sync.Mutex
	servers map[string]*rawserver.Server
	down    map[string]bool
	dials   []string
	asked   []asking
}

// asking is one request that arrived.
type asking struct {
	addr string
	at   time.Time
	rawserver.Request
}

func newScripted(t testing.TB, handle func(addr string, req rawserver.Request) rawserver.Reply) *scripted {
	return &scripted{t: t, handle: handle, servers: map[string]*rawserver.Server{}, down: map[string]bool{}}
}

// inBubble runs a test on a virtual clock against scripted brokers.
func inBubble(t *testing.T, handle func(addr string, req rawserver.Request) rawserver.Reply, test func(t *testing.T, n *scripted)) {
	synctest.Test(t, func(t *testing.T) {
		n := newScripted(t, handle)
		defer n.close()
		test(t, n)
	})
}

func (n *scripted) close() {
	n.mu.Lock()
	servers := n.servers
	n.servers = nil
	n.mu.Unlock()
	for _, s := range servers {
		s.Close()
	}
}

// dial is a Config.Net.Dialer.
func (n *scripted) dial(_ context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, addr)
	if n.down[addr] || n.servers == nil {
		n.mu.Unlock()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	s := n.servers[addr]
	if s == nil {
		s = rawserver.StartPipes(rawserver.Script{Handle: func(req rawserver.Request) rawserver.Reply {
			n.mu.Lock()
			n.asked = append(n.asked, asking{addr, time.Now(), req})
			n.mu.Unlock()
			return n.handle(addr, req)
		}})
		n.servers[addr] = s
	}
	n.mu.Unlock()
	c, err := s.Pipe()
	if err != nil {
		return nil, err
	}
	return newSendBuffer(c), nil
}

// sendBuffer is a connection that takes what is written without waiting for the other side, as
// sockets do: a scripted broker that holds an answer does not read.
type sendBuffer struct {
	net.Conn
	out   chan []byte // written by Write, read by pump, never closed
	ended chan struct{}
	once  sync.Once
}

func newSendBuffer(c net.Conn) *sendBuffer {
	b := &sendBuffer{Conn: c, out: make(chan []byte, 1000), ended: make(chan struct{})}
	go b.pump() // ends with Close, or when the other side has
	return b
}

func (b *sendBuffer) pump() {
	for {
		select {
		case p := <-b.out:
			if _, err := b.Conn.Write(p); err != nil {
				return
			}
		case <-b.ended:
			return
		}
	}
}

func (b *sendBuffer) Write(p []byte) (int, error) {
	select {
	case b.out <- slices.Clone(p):
		return len(p), nil
	case <-b.ended:
		return 0, net.ErrClosed
	}
}

func (b *sendBuffer) Close() error {
	b.once.Do(func() { close(b.ended) })
	return b.Conn.Close()
}

// sendOne sends a message and waits for its outcome. (SyncProducer keeps channels to be used again,
// which must not leave a bubble.)
func sendOne(t *testing.T, p *AsyncProducer, m *ProducerMessage) (outcome error) {
	require.NoError(t, p.Produce(t.Context(), m, func(_ *ProducerMessage, err error) { outcome = err }))
	require.NoError(t, p.Flush(t.Context()))
	return outcome
}

// stop cuts a broker's connections and refuses new ones.
func (n *scripted) stop(addr string) {
	n.mu.Lock()
	n.down[addr] = true
	s := n.servers[addr]
	n.mu.Unlock()
	if s != nil {
		s.CloseConnections()
	}
}

func (n *scripted) start(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.down, addr)
}

// requests are those of a key that arrived so far.
func (n *scripted) requests(key kmsg.Key) (out []asking) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.asked {
		if a.Key == int16(key) {
			out = append(out, a)
		}
	}
	return out
}

// dialled is how often an address was dialled.
func (n *scripted) dialled(addr string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.dials {
		if a == addr {
			times++
		}
	}
	return times
}

// client makes a client that is closed with the test's network.
func (n *scripted) client(change func(*Config), addrs ...string) (*Client, error) {
	cfg := NewConfig()
	cfg.Net.Dialer = n.dial
	if change != nil {
		change(cfg)
	}
	return NewClient(addrs, cfg)
}

func (n *scripted) mustClient(change func(*Config), addrs ...string) *Client {
	c, err := n.client(change, addrs...)
	require.NoError(n.t, err)
	return c
}

// world is what scripted brokers say of their cluster; it may be changed as time goes by.
type world struct {
	mu     sync.Mutex
	nodes  map[int32]string
	topics map[string][]kmsg.MetadataResponseTopicPartition
	errs   map[string]int16
}

func newWorld(nodes map[int32]string) *world {
	return &world{nodes: nodes, topics: map[string][]kmsg.MetadataResponseTopicPartition{}, errs: map[string]int16{}}
}

// set changes it.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// metadata answers a Metadata request as a broker would.
func (w *world) metadata(raw rawserver.Request) rawserver.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	req, ok := raw.Decode().(*kmsg.MetadataRequest)
	if !ok {
		return rawserver.Reply{Close: true}
	}
	resp := kmsg.NewPtrMetadataResponse()
	for id, addr := range w.nodes {
		resp.Brokers = append(resp.Brokers, brokerAt(id, addr))
	}
	slices.SortFunc(resp.Brokers, func(a, b kmsg.MetadataResponseBroker) int { return int(a.NodeID - b.NodeID) })
	var names []string
	if req.Topics == nil {
		for name := range w.topics {
			names = append(names, name)
		}
	}
	for _, t := range req.Topics {
		names = append(names, *t.Topic)
	}
	slices.Sort(names)
	for _, name := range names {
		t := kmsg.NewMetadataResponseTopic()
		t.Topic, t.Partitions, t.ErrorCode = kmsg.StringPtr(name), w.topics[name], w.errs[name]
		if len(t.Partitions) == 0 && t.ErrorCode == 0 {
			t.ErrorCode = 3
		}
		resp.Topics = append(resp.Topics, t)
	}
	return rawserver.Respond(raw, resp)
}

// led is a topic's partitions, all led by one node; −1: by none.
func led(partitions int, leader, epoch int32) (out []kmsg.MetadataResponseTopicPartition) {
	for i := range partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = int32(i), leader, epoch
		p.Replicas, p.ISR = []int32{0, 1}, []int32{0, 1}
		if leader < 0 {
			p.ErrorCode = 5
		}
		out = append(out, p)
	}
	return out
}

// produced answers a Produce request: every batch has the error code that code says.
func produced(raw rawserver.Request, code func(topic string, p *kmsg.ProduceResponseTopicPartition)) rawserver.Reply {
	req, ok := raw.Decode().(*kmsg.ProduceRequest)
	if !ok {
		return rawserver.Reply{Close: true}
	}
	resp := kmsg.NewPtrProduceResponse()
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition = p.Partition
			if code != nil {
				code(t.Topic, &rp)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return rawserver.Respond(raw, resp)
}

// ordinary plays brokers that work.
func (w *world) ordinary(_ string, raw rawserver.Request) rawserver.Reply {
	switch kmsg.Key(raw.Key) {
	case kmsg.Metadata:
		return w.metadata(raw)
	case kmsg.Produce:
		return produced(raw, nil)
	}
	return rawserver.Reply{Close: true}
}

func addresses(c *Client) (out []string) {
	for _, b := range c.Brokers() {
		out = append(out, fmt.Sprint(b.ID(), "@", b.Addr()))
	}
	return out
}
