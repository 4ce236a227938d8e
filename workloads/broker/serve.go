package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// retentionEvery is how often logs are cut to Options.RetentionBytes.
const retentionEvery = time.Second

// Serve runs a cluster until ctx ends, and then returns nil. ready, if not nil, is called once
// with the address of every node, before any is needed; it must not block. An error means that
// the cluster never came up.
func Serve(ctx context.Context, o Options, ready func(bootstrap []string)) error {
	return serveCluster(ctx, o, func(k *kfake.Cluster) {
		if ready != nil {
			ready(k.ListenAddrs())
		}
	})
}

func serveCluster(ctx context.Context, o Options, ready func(*kfake.Cluster)) error {
	cluster, err := newKfake(o)
	if err != nil {
		return err
	}
	defer cluster.Close()
	ready(cluster)
	keepRetention(ctx, cluster, o)
	return nil
}

// keepRetention blocks until ctx ends, cutting logs now and then where o bounds them.
func keepRetention(ctx context.Context, cluster *kfake.Cluster, o Options) {
	if o.Discard || o.retention() < 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			cluster.ApplyRetention()
		}
	}
}

func newKfake(o Options, more ...kfake.Opt) (*kfake.Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	cluster, err := kfake.NewCluster(append(o.kfakeOptions(), more...)...)
	if err != nil {
		return nil, startError(err)
	}
	return cluster, nil
}

// startError says what to do about the one thing that commonly goes wrong.
func startError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("embedded broker: %s is in use by another program; choose another --port, or 0 for a free one: %w", op.Addr, err)
	}
	return fmt.Errorf("embedded broker did not start: %w", err)
}

// Main is the whole life of a broker process: it serves o until ctx ends or lifeline reaches
// its end (nil: no lifeline), and returns nil then.
//
// The first line on stdout is the bootstrap list, HOST:PORT[,HOST:PORT…], for programs; what
// is for people goes to stderr.
func Main(ctx context.Context, o Options, lifeline io.Reader, stdout, stderr io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var printed error
	err := serveCluster(ctx, o, func(k *kfake.Cluster) {
		bootstrap := k.ListenAddrs()
		if lifeline != nil {
			// Owned by the process: a read of stdin cannot be interrupted, so nobody waits for it.
			// It ends when the parent closes its end of the pipe or is gone.
			go func() {
				obey(lifeline, k, stderr)
				_, _ = io.Copy(io.Discard, lifeline) // after a line that is too long
				stop()
			}()
		}
		if _, printed = fmt.Fprintln(stdout, strings.Join(bootstrap, ",")); printed != nil {
			stop() // nobody can learn the address: there is nothing to serve for
			return
		}
		if lifeline == nil {
			_, _ = fmt.Fprintln(stderr, o.greeting(bootstrap))
		}
	})
	if err == nil && printed != nil {
		err = fmt.Errorf("embedded broker: could not print its address: %w", printed)
	}
	return err
}

// greeting is what a person who started the broker by hand wants to know.
func (o Options) greeting(bootstrap []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "embedded broker: %d node(s), ", len(bootstrap))
	switch {
	case o.Discard:
		b.WriteString("drops what is produced, serves synthetic batches")
	case o.retention() < 0:
		b.WriteString("keeps every message in memory")
	default:
		fmt.Fprintf(&b, "keeps the last %d MiB of each partition in memory", o.retention()>>20)
	}
	fmt.Fprintf(&b, "\ntry: kbench run quick --brokers %s\nstop with Ctrl-C", strings.Join(bootstrap, ","))
	return b.String()
}

// parseBootstrap reads the line that Main prints.
func parseBootstrap(line string) ([]string, error) {
	addresses := strings.Split(strings.TrimSpace(line), ",")
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil || net.ParseIP(host) == nil {
			return nil, fmt.Errorf("%q is no HOST:PORT", a)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q has no port", a)
		}
	}
	return addresses, nil
}
