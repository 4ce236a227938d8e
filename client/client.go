package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// Client knows a cluster: its brokers, topics and leaders. Producers and readers are made from
// one, their own or a shared one. All methods are safe for concurrent use; those that may have
// to ask the cluster take a context.
type Client struct {
	cfg  Config
	opts conn.Options

	// life ends when the client closes; every goroutine of it obeys it.
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup // the background refresh and refresh rounds; Close waits

	meta atomic.Pointer[metadata]

	mu     sync.Mutex
	seeds  []*Broker           // in the shuffled order they are tried in; kept for good
	nodes  map[int32]*Broker   // by node id
	used   map[string]struct{} // topics asked for: what a refresh is about
	closed bool
	// coordinators are node ids; retired is what brokers that are gone had measured, by node id.
	coordinators map[coordinatorKey]int32
	retired      map[int32]*brokerMetrics

	refresh refresher
	panics  atomic.Int64 // caught in the user's functions that open connections, or say how long to wait
}

// NewClient makes a client from bootstrap addresses (host:port; 9092 when no port is given) and
// waits until one of them has described the cluster, for Metadata.Timeout at most. cfg may be
// nil for the defaults.
func NewClient(addrs []string, cfg *Config) (*Client, error) {
	return NewClientContext(context.Background(), addrs, cfg)
}

// NewClientContext is NewClient whose first contact also ends with ctx. The client outlives ctx.
func NewClientContext(ctx context.Context, addrs []string, cfg *Config) (*Client, error) {
	if cfg == nil {
		cfg = NewConfig()
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	addrs, err := bootstrapAddrs(addrs)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: *cfg, nodes: map[int32]*Broker{}, used: map[string]struct{}{},
		coordinators: map[coordinatorKey]int32{}, retired: map[int32]*brokerMetrics{},
	}
	if c.opts, err = cfg.connOptions(&c.panics); err != nil {
		return nil, err
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.meta.Store(emptyMetadata())
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	for _, a := range addrs {
		c.seeds = append(c.seeds, newBroker(c.life, -1, a, c.opts))
	}
	if err := c.RefreshMetadata(ctx); err != nil {
		_ = c.Close() // the only error is that it was closed before
		return nil, err
	}
	if f := cfg.Metadata.RefreshFrequency; f > 0 {
		c.wg.Add(1)
		// Owned by the client; stopped by life; Close waits.
		go c.refreshPeriodically(f)
	}
	return c, nil
}

// bootstrapAddrs checks and completes what the user gave.
func bootstrapAddrs(addrs []string) ([]string, error) {
	var out []string
	for _, list := range addrs {
		for a := range strings.SplitSeq(list, ",") {
			if a = strings.TrimSpace(a); a == "" {
				continue
			}
			if _, _, err := net.SplitHostPort(a); err != nil {
				a = net.JoinHostPort(strings.Trim(a, "[]"), "9092")
			}
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no bootstrap address was given (host:port, several separated by commas)", ErrNoBrokers)
	}
	return out, nil
}

// Config returns a copy of the settings in effect.
func (c *Client) Config() Config { return c.cfg }

// Closed says whether Close was called.
func (c *Client) Closed() bool { return c.life.Err() != nil }

// Close ends every connection and goroutine of the client. Producers and readers that share it
// must be closed before.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.closed = true
	all := slices.Clone(c.seeds)
	for _, b := range c.nodes {
		all = append(all, b)
	}
	c.mu.Unlock()
	c.end()
	for _, b := range all {
		b.close(ErrClosed)
	}
	c.wg.Wait()
	return nil
}

// ClusterID is the cluster's own id; empty when it does not tell.
func (c *Client) ClusterID() string { return c.meta.Load().clusterID }

// Brokers lists the cluster's nodes by id.
func (c *Client) Brokers() []*Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Broker, 0, len(c.nodes))
	for _, b := range c.nodes {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *Broker) int { return int(a.ID()) - int(b.ID()) })
	return out
}

// Topics lists every topic of the cluster, sorted. It asks the cluster.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	if err := c.refreshAll(ctx); err != nil {
		return nil, err
	}
	var out []string
	for name, t := range c.meta.Load().topics {
		if t.err == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Partitions lists the partitions of a topic.
func (c *Client) Partitions(ctx context.Context, topic string) ([]int32, error) {
	t, err := c.topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make([]int32, len(t.partitions))
	for i := range out {
		out[i] = int32(i)
	}
	return out, nil
}

// WritablePartitions lists the partitions of a topic that have a leader.
func (c *Client) WritablePartitions(ctx context.Context, topic string) ([]int32, error) {
	t, err := c.topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	return slices.Clone(t.writable), nil
}

// Leader is the broker that leads a partition. While there is none it refreshes, with the
// backoff and for as long as Metadata says, and then returns what the cluster said last.
func (c *Client) Leader(ctx context.Context, topic string, partition int32) (*Broker, error) {
	b, _, err := c.leader(ctx, topic, partition)
	return b, err
}

// Replicas lists the nodes that hold a partition.
func (c *Client) Replicas(ctx context.Context, topic string, partition int32) ([]int32, error) {
	p, err := c.partition(ctx, topic, partition)
	return slices.Clone(p.replicas()), err
}

// InSyncReplicas lists the nodes that hold all of a partition, as of the last refresh.
func (c *Client) InSyncReplicas(ctx context.Context, topic string, partition int32) ([]int32, error) {
	p, err := c.partition(ctx, topic, partition)
	return slices.Clone(p.isr()), err
}

// OfflineReplicas lists the nodes that hold a partition and cannot serve it: they are down, or the
// disk it is on has failed (KIP-112).
func (c *Client) OfflineReplicas(ctx context.Context, topic string, partition int32) ([]int32, error) {
	p, err := c.partition(ctx, topic, partition)
	return slices.Clone(p.offline()), err
}

// Controller is the node that takes administrative requests.
func (c *Client) Controller(ctx context.Context) (*Broker, error) {
	if b := c.node(c.meta.Load().controller); b != nil {
		return b, nil
	}
	if err := c.RefreshMetadata(ctx); err != nil {
		return nil, err
	}
	if b := c.node(c.meta.Load().controller); b != nil {
		return b, nil
	}
	return c.anyBroker()
}

// topic returns what is known of a topic, asking the cluster when nothing is. A topic the
// cluster refuses to describe is an error; one that only lacks leaders is not.
func (c *Client) topic(ctx context.Context, topic string) (*topicMeta, error) {
	if t := c.meta.Load().topics[topic]; t != nil && len(t.partitions) > 0 {
		return t, nil
	}
	var last error
	for attempt := 0; ; attempt++ {
		if err := c.RefreshMetadata(ctx, topic); err != nil {
			if last != nil {
				err = fmt.Errorf("%w (%w)", last, err)
			}
			return nil, err
		}
		t := c.meta.Load().topics[topic]
		if t != nil && len(t.partitions) > 0 {
			return t, nil
		}
		last = topicError(topic, t)
		if t != nil && t.err != nil && !wire.Classify(t.err).Has(wire.Retriable) || attempt >= c.cfg.Metadata.Retry.Max {
			return nil, last
		}
		if err := c.sleep(ctx, c.metadataWait(attempt+1)); err != nil {
			return nil, fmt.Errorf("%w (%w)", last, err)
		}
	}
}

// topicError says that a topic cannot be used, and why as far as the cluster tells.
func topicError(topic string, t *topicMeta) error {
	if t == nil || t.err == nil || errors.Is(t.err, wire.ErrUnknownTopicOrPartition) {
		return fmt.Errorf("%w %q: create it, or allow brokers to (metadata.allowAutoTopicCreation)", ErrTopicUnknown, topic)
	}
	return fmt.Errorf("topic %q: %w", topic, t.err)
}

func (c *Client) partition(ctx context.Context, topic string, partition int32) (partitionMeta, error) {
	t, err := c.topic(ctx, topic)
	if err != nil {
		return partitionMeta{}, err
	}
	return t.partition(topic, partition)
}

// leader is Leader with the leader's epoch.
func (c *Client) leader(ctx context.Context, topic string, partition int32) (*Broker, int32, error) {
	for attempt := 0; ; attempt++ {
		p, err := c.partition(ctx, topic, partition)
		if err != nil {
			return nil, -1, err
		}
		if b := c.node(p.leader); b != nil {
			return b, p.epoch, nil
		}
		if attempt > c.cfg.Metadata.Retry.Max {
			return nil, -1, leaderless(topic, partition, p.err)
		}
		if attempt > 0 {
			if err := c.sleep(ctx, c.metadataWait(attempt)); err != nil {
				return nil, -1, fmt.Errorf("%w (%w)", leaderless(topic, partition, p.err), err)
			}
		}
		if err := c.RefreshMetadata(ctx, topic); err != nil {
			return nil, -1, err
		}
	}
}

func leaderless(topic string, partition int32, err error) error {
	if err == nil {
		err = wire.ErrLeaderNotAvailable
	}
	return fmt.Errorf("topic %q partition %d has no leader: %w", topic, partition, err)
}

// moved takes in a hint that a partition's leader changed (KIP-951).
func (c *Client) moved(topic string, partition, leader, epoch int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.meta.Load().moved(topic, partition, leader, epoch); n != nil {
		c.meta.Store(n)
	}
}

// node is the broker with the given id, nil when it is not known.
func (c *Client) node(id int32) *Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[id]
}

// anyBroker is some broker, one with an open connection where there is one.
func (c *Client) anyBroker() (*Broker, error) {
	for _, b := range c.candidates() {
		return b, nil
	}
	return nil, ErrNoBrokers
}

// sleep waits for d, or until ctx or the client ends.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return ErrClosed
	}
}
