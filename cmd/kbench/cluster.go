package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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

// findCluster starts the embedded broker when no addresses are given. Should it end by itself
// later, stop is cancelled with the reason.
func findCluster(ctx context.Context, brokers []string, stop *stopper) (*cluster, error) {
	if len(brokers) == 0 {
		if env := os.Getenv("KBENCH_BROKERS"); env != "" {
			brokers = strings.Split(env, ",")
		}
	}
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
			stop.cancel(fmt.Errorf("%w: %w", errBroker, child.Err()))
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

// describe asks the cluster what it is.
func (c *cluster) describe(ctx context.Context, cfg *client.Config) (results.Cluster, error) {
	out := results.Cluster{Embedded: c.child != nil, Bootstrap: c.bootstrap}
	cl, err := client.NewClientContext(ctx, c.bootstrap, cfg)
	if err != nil {
		return out, fmt.Errorf("%w; start a broker there, correct --brokers, or leave it out to use the embedded one", err)
	}
	defer func() { _ = cl.Close() }() // nothing is open on it
	out.ClusterID = cl.ClusterID()
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
	return out, err
}
