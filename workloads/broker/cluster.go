package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrClosed is what a Cluster's methods return after Close.
var ErrClosed = errors.New("embedded broker is closed")

// Cluster is an embedded broker inside this process whose faults are scripted. It is for
// tests; its methods are safe for concurrent use.
type Cluster struct {
	k      *kfake.Cluster
	faults *faults

	mu     sync.RWMutex  // held to read while k is asked for something: k never answers once closed
	closed bool          // guarded by mu
	ports  map[int32]int // node → port, also of stopped nodes; guarded by mu

	timers sync.WaitGroup // of Stall
	done   chan struct{}  // closed by Close
}

// Start runs a cluster in this process. The caller closes it. Retention is not applied: the
// logs of a test stay whole.
func Start(o Options) (*Cluster, error) {
	f := newFaults()
	k, err := newKfake(o, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		return &listener{Listener: l, faults: f, port: l.Addr().(*net.TCPAddr).Port}, nil
	}))
	if err != nil {
		return nil, err
	}
	c := &Cluster{k: k, faults: f, ports: make(map[int32]int), done: make(chan struct{})}
	for node, address := range k.ListenAddrs() {
		c.ports[int32(node)] = portOf(address)
	}
	return c, nil
}

func portOf(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

// Close stops every node and closes every connection. It may be called more than once.
func (c *Cluster) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	close(c.done)
	c.mu.Unlock()
	c.faults.mu.Lock()
	c.faults.closing = true
	c.faults.mu.Unlock()
	c.faults.resume()
	c.k.Close()
	c.faults.cut(func(*conn) bool { return true })
	c.timers.Wait()
}

// ask runs fn while the cluster is known to be open.
func (c *Cluster) ask(fn func() error) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return ErrClosed
	}
	return fn()
}

// Bootstrap is the address of every running node, nil once closed.
func (c *Cluster) Bootstrap() []string {
	var addresses []string
	_ = c.ask(func() error {
		addresses = c.k.ListenAddrs()
		return nil
	})
	return addresses
}

// Address is where a node listens, or listened before it was stopped; empty if there never was
// such a node. Nodes are numbered from 0.
func (c *Cluster) Address(node int32) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	port, ok := c.ports[node]
	if !ok {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// CreateTopic makes a topic, without a request. config may be nil.
func (c *Cluster) CreateTopic(name string, partitions int, config map[string]string) error {
	return c.ask(func() error { return c.k.CreateTopic(name, int32(partitions), config) })
}

// DeleteTopic removes a topic, without a request.
func (c *Cluster) DeleteTopic(name string) error {
	return c.ask(func() error { return c.k.DeleteTopic(name) })
}

// DeleteRecords moves the start of a partition's log to offset, as retention does.
func (c *Cluster) DeleteRecords(topic string, partition int32, offset int64) error {
	return c.ask(func() error { return c.k.DeleteRecords(topic, partition, offset) })
}

// Offsets are the start of a partition's log and its high watermark.
func (c *Cluster) Offsets(topic string, partition int32) (start, end int64, err error) {
	err = c.ask(func() error {
		info := c.k.PartitionInfo(topic, partition)
		if info == nil {
			return fmt.Errorf("no partition %s-%d", topic, partition)
		}
		start, end = info.LogStartOffset, info.HighWatermark
		return nil
	})
	return start, end, err
}

// Leader is the node that leads a partition, -1 if there is no such partition.
func (c *Cluster) Leader(topic string, partition int32) int32 {
	leader := int32(-1)
	_ = c.ask(func() error {
		leader = c.k.LeaderFor(topic, partition)
		return nil
	})
	return leader
}

// MoveLeader makes node the leader of a partition and raises its leader epoch.
func (c *Cluster) MoveLeader(topic string, partition, node int32) error {
	return c.ask(func() error { return c.k.MoveTopicPartition(topic, partition, node) })
}

// Coordinator is the node that coordinates a group or a transactional id, -1 once closed.
func (c *Cluster) Coordinator(key string) int32 {
	node := int32(-1)
	_ = c.ask(func() error {
		node = c.k.CoordinatorFor(key)
		return nil
	})
	return node
}

// MoveCoordinators spreads groups and transactional ids over the nodes anew.
func (c *Cluster) MoveCoordinators() { c.k.RehashCoordinators() }

// StopNode takes a node out of the cluster: its connections are reset, it leaves the metadata,
// and its partitions get leaders among the others. The last node cannot be stopped.
func (c *Cluster) StopNode(node int32) error {
	return c.ask(func() error {
		if err := c.k.RemoveNode(node); err != nil {
			return err
		}
		c.faults.cut(c.on(node))
		return nil
	})
}

// StartNode brings a stopped node back on its old port, or adds a new one on a free port, with
// the next number if node is negative. It returns the node's number. kfake spreads all leaders
// anew when a node comes.
func (c *Cluster) StartNode(node int32) (int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return -1, ErrClosed
	}
	node, port, err := c.k.AddNode(node, c.ports[node])
	if err != nil {
		return -1, err
	}
	c.ports[node] = port
	return node, nil
}

// Unreachable resets a node's connections and every new one, while the metadata still lists
// it and names it as leader, as after a crash that the controller has not noticed; Reachable
// ends it.
func (c *Cluster) Unreachable(node int32) {
	c.mu.RLock()
	port := c.ports[node]
	c.mu.RUnlock()
	c.faults.mu.Lock()
	c.faults.unreach[port] = true
	c.faults.mu.Unlock()
	c.faults.cut(func(x *conn) bool { return x.port == port })
}

// Reachable lets every node accept connections again.
func (c *Cluster) Reachable() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	clear(c.faults.unreach)
}

// CloseConnections resets every open connection and returns how many there were. Requests
// whose answer was not sent yet may or may not have been applied.
func (c *Cluster) CloseConnections() int {
	return c.faults.cut(func(*conn) bool { return true })
}

// CloseNodeConnections is CloseConnections for one node.
func (c *Cluster) CloseNodeConnections(node int32) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.faults.cut(c.on(node))
}

// on picks the connections of a node; c.mu is held.
func (c *Cluster) on(node int32) func(*conn) bool {
	port, ok := c.ports[node]
	return func(x *conn) bool { return ok && x.port == port }
}

// Stall holds the answers to Produce requests, which are applied all the same: for d, or until
// Resume when d is 0. Answers behind a held one on the same connection wait too.
func (c *Cluster) Stall(d time.Duration) { c.StallKey(int16(kmsg.Produce), d) }

// StallKey is Stall for another API key.
func (c *Cluster) StallKey(key int16, d time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return
	}
	c.faults.stall(key)
	if d <= 0 {
		return
	}
	c.timers.Add(1)
	// Owned by the cluster: ends after d or with Close, which waits for it.
	go func() {
		defer c.timers.Done()
		wait(d, c.done)
		c.faults.resume()
	}()
}

// Resume sends every held answer.
func (c *Cluster) Resume() { c.faults.resume() }

// Delay makes every answer to requests of this API key take at least d longer; 0 ends it.
// Answers on one connection keep their order, so delays add up there.
func (c *Cluster) Delay(key int16, d time.Duration) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.delay[key] = d
}

// LoseAnswers applies the next n requests of this API key but resets the connection in place
// of the answer, so that the client cannot know what became of them.
func (c *Cluster) LoseAnswers(key int16, n int) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.lose[key] = n
}

// FailProduce answers the next n Produce requests with this error code for every partition, -1
// for all of them until the fault is removed. Nothing is appended, except with
// REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND, as on a real broker.
func (c *Cluster) FailProduce(code int16, n int) *Fault {
	return c.Fail(Failure{Key: int16(kmsg.Produce), Code: code, Count: n})
}

// Failure says which requests fail, and how.
type Failure struct {
	Key        int16   // API key
	Code       int16   // Kafka's error code
	Count      int     // requests; 0 means 1, -1 until removed
	Nodes      []int32 // only on these nodes; nil: all
	Topic      string  // only this topic; empty: all
	Partitions []int32 // only these partitions; nil: all
	Group      string  // only this group; empty: all
	TxnID      string  // only this transactional id; empty: all
	TopLevel   bool    // set the answer's own error code rather than its entities'
}

// Fail installs a failure. An unknown code answers UNKNOWN_SERVER_ERROR.
func (c *Cluster) Fail(f Failure) *Fault {
	return install(c.k, f)
}

// Fault is an installed failure.
type Fault struct{ h *kfake.FaultHandle }

// Hits is the number of requests that failed by it so far.
func (f *Fault) Hits() int { return f.h.Hits() }

// Wait returns once n requests failed by it, or ctx's error.
func (f *Fault) Wait(ctx context.Context, n int) error { return f.h.Wait(ctx, n) }

// Remove ends it.
func (f *Fault) Remove() { f.h.Remove() }

// Answer hands the next request of this API key to fn, in place of the broker: what fn returns
// is sent, an error closes the connection, and a nil response with a nil error leaves it to the
// broker after all and waits for the next. fn runs on the broker's only goroutine: it must
// neither block nor call the Cluster, except Answer.
func (c *Cluster) Answer(key int16, fn func(node int32, request kmsg.Request) (kmsg.Response, error)) {
	c.k.ControlKey(key, func(request kmsg.Request) (kmsg.Response, error, bool) {
		response, err := fn(c.k.CurrentNode(), request)
		return response, err, response != nil || err != nil
	})
}

// Observe shows every request of this API key to fn, -1 for all keys, before the broker works
// on it. fn runs on the broker's only goroutine, as in Answer.
func (c *Cluster) Observe(key int16, fn func(node int32, request kmsg.Request)) {
	c.k.ControlKey(key, func(request kmsg.Request) (kmsg.Response, error, bool) {
		fn(c.k.CurrentNode(), request)
		return nil, nil, false
	})
}

// Requests is the number of requests of this API key that arrived so far, answered or not.
func (c *Cluster) Requests(key int16) int64 {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	return c.faults.requests[key]
}

// Versions are the versions of requests that arrived so far, rising, by API key: the embedded broker
// takes versions that Kafka 4 refuses, so that tests have to look for themselves.
func (c *Cluster) Versions() map[int16][]int16 {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	out := make(map[int16][]int16)
	for x := range c.faults.versions {
		out[x[0]] = append(out[x[0]], x[1])
	}
	for _, versions := range out {
		slices.Sort(versions)
	}
	return out
}

// Connections are the connections open now, and those ever accepted.
func (c *Cluster) Connections() (open int, accepted int64) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	return len(c.faults.conns), c.faults.accepted
}

// AwaitHeld returns once a stall holds at least n answers to requests of this API key, or ctx's
// error.
func (c *Cluster) AwaitHeld(ctx context.Context, key int16, n int) error {
	have, err := c.await(ctx, int64(n), func(f *faults) int64 { return int64(f.held[key]) })
	if err != nil {
		return fmt.Errorf("%d of %d answers to %s are held: %w", have, n, kmsg.NameForKey(key), err)
	}
	return nil
}

// AwaitRequests returns once n requests of this API key have arrived, counted from the start,
// or ctx's error.
func (c *Cluster) AwaitRequests(ctx context.Context, key int16, n int64) error {
	seen, err := c.await(ctx, n, func(f *faults) int64 { return f.requests[key] })
	if err != nil {
		return fmt.Errorf("%d of %d %s requests arrived: %w", seen, n, kmsg.NameForKey(key), err)
	}
	return nil
}

// await returns once enough of what the faults count is there, with what there is.
func (c *Cluster) await(ctx context.Context, n int64, count func(*faults) int64) (have int64, err error) {
	for {
		c.faults.mu.Lock()
		have, changed := count(c.faults), c.faults.changed
		c.faults.mu.Unlock()
		if have >= n {
			return have, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return have, ctx.Err()
		}
	}
}
