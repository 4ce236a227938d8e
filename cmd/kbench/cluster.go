package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/broker"
)

// cluster is what is measured: one that the user named, or an embedded broker.
type cluster struct {
	bootstrap []string
	child     *broker.Child // nil for the user's
	watched   chan struct{} // closed when the child's watcher has ended
	closing   chan struct{} // closed by close
}

// findCluster starts the embedded broker when there are no addresses. Should it end by itself
// later, there is nothing to wait for, and stop abandons the run with the reason.
func findCluster(ctx context.Context, brokers []string, stop *stopper) (*cluster, error) {
	if len(brokers) > 0 {
		return &cluster{bootstrap: brokers}, nil
	}
	child, err := broker.StartChild(ctx, broker.ChildOptions{})
	if err != nil {
		return nil, err
	}
	stop.beforeExit(child.Kill)
	c := &cluster{
		bootstrap: child.Bootstrap(), child: child,
		watched: make(chan struct{}), closing: make(chan struct{}),
	}
	// Owned by the cluster; ends when the child ends or with close, which waits.
	go func() {
		defer close(c.watched)
		select {
		case <-child.Exited():
			stop.abandon(child.Err())
		case <-c.closing:
		}
	}()
	return c, nil
}

func (c *cluster) list() string { return strings.Join(c.bootstrap, ",") }

func (c *cluster) close() {
	if c.child == nil {
		return
	}
	close(c.closing)
	<-c.watched
	_ = c.child.Close() // how it ends does not matter any more
}

const (
	// startPatience is how long a port that refuses is tried: its broker may be starting.
	startPatience = 3 * time.Second
	// answerBound is how long a port may take to answer the first request, unless
	// net.dialTimeout says otherwise: the client's own default is for a broker that is known.
	answerBound = 10 * time.Second
)

// contact makes a client, giving up sooner than the client does by itself later, so that a wrong
// address is found out in seconds.
func (c *cluster) contact(ctx context.Context, cfg *client.Config, patience time.Duration) (*client.Client, error) {
	first := *cfg
	first.Metadata.Retry.Max = 0
	if first.Net.DialTimeout == client.NewConfig().Net.DialTimeout {
		first.Net.DialTimeout = answerBound
	}
	for start := time.Now(); ; {
		cl, err := client.NewClientContext(ctx, c.bootstrap, &first)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) > patience {
			return cl, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// gone says why the cluster cannot be reached any more, nil when it can.
func (c *cluster) gone(ctx context.Context, cfg *client.Config) error {
	cl, err := c.contact(ctx, cfg, 0)
	if err != nil {
		return fmt.Errorf("the cluster went away during the run: %w", err)
	}
	return cl.Close()
}

// unreached says what to do about a cluster that cannot be reached. Of one that does not let us in,
// the client has said it.
func unreached(err error) error {
	if client.IsRefusal(err) {
		return err
	}
	return fmt.Errorf("%w; start a broker there, correct --brokers, or leave it out to use the embedded one", err)
}

// describe asks the cluster what it is.
func (c *cluster) describe(ctx context.Context, cfg *client.Config) (results.Cluster, error) {
	out := results.Cluster{Embedded: c.child != nil, Bootstrap: c.bootstrap}
	cl, err := c.contact(ctx, cfg, startPatience)
	if err != nil {
		return out, unreached(err)
	}
	defer func() { _ = cl.Close() }() // nothing is open on it
	out.ClusterID = cl.ClusterID()
	out.Embedded = out.Embedded || out.ClusterID == broker.ClusterID
	for _, b := range cl.Brokers() {
		out.Brokers = append(out.Brokers, results.Broker{ID: b.ID(), Addr: b.Addr(), Rack: b.Rack()})
	}
	first := cl.Brokers()[0]
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if out.Version, err = first.GuessVersion(ctx); err != nil {
		return out, err
	}
	rtt, err := first.RoundTrip(ctx)
	out.RTTNs = int64(rtt)
	if err == nil {
		describeBrokers(ctx, cl.Brokers(), &out)
	}
	return out, err
}

// Bounds of describing brokers.
const (
	describedBrokers = 100 // more are not asked
	describedAtOnce  = 8
	describeTimeout  = 5 * time.Second // for all of them
)

// describeBrokers asks each broker for its release and its settings. What one does not tell is a note: a run
// needs none of it, and not everybody may ask.
func describeBrokers(ctx context.Context, brokers []*client.Broker, out *results.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	notes := make([]string, len(brokers))
	var g errgroup.Group
	g.SetLimit(describedAtOnce)
	for i, b := range brokers[:min(len(brokers), describedBrokers)] {
		g.Go(func() error { // Wait below waits for them, ctx bounds them
			notes[i] = describeBroker(ctx, b, &out.Brokers[i])
			return nil
		})
	}
	_ = g.Wait()
	out.Notes = append(out.Notes, slices.DeleteFunc(notes, func(n string) bool { return n == "" })...)
	if n := len(brokers) - describedBrokers; n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d more brokers were not asked for their settings", n))
	}
}

// describeBroker fills in one broker, and gives what it did not tell.
func describeBroker(ctx context.Context, b *client.Broker, into *results.Broker) string {
	var notes []string
	var err error
	if into.Version, err = b.GuessVersion(ctx); err != nil {
		notes = append(notes, fmt.Sprintf("its release is not known: %v", err))
	}
	settings, more, err := b.Settings(ctx)
	switch {
	case err != nil:
		notes = append(notes, fmt.Sprintf("its settings are not known: %v", err))
	case more > 0:
		notes = append(notes, fmt.Sprintf("%d more settings are left out", more))
	}
	into.Config = settings
	if len(notes) == 0 {
		return ""
	}
	return fmt.Sprintf("broker %d: %s", into.ID, strings.Join(notes, "; "))
}
