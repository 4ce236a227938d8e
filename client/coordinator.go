package client

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// coordinatorKind says what is coordinated, as it stands in a FindCoordinator request.
type coordinatorKind int8

const (
	coordinatorOfGroup       coordinatorKind = 0
	coordinatorOfTransaction coordinatorKind = 1
)

// coordinatorKey is one group, or one transactional id.
type coordinatorKey struct {
	kind coordinatorKind
	name string
}

func (k coordinatorKey) String() string {
	if k.kind == coordinatorOfTransaction {
		return fmt.Sprintf("transactional id %q", k.name)
	}
	return fmt.Sprintf("group %q", k.name)
}

// Coordinator is the broker that coordinates a consumer group. It is looked up once and remembered
// until RefreshCoordinator, or until a request that this package sends to it is answered with
// NOT_COORDINATOR. Failures that may pass are retried as Admin says.
func (c *Client) Coordinator(ctx context.Context, group string) (*Broker, error) {
	return c.coordinator(ctx, coordinatorKey{coordinatorOfGroup, group})
}

// RefreshCoordinator looks a group's coordinator up again.
func (c *Client) RefreshCoordinator(ctx context.Context, group string) error {
	k := coordinatorKey{coordinatorOfGroup, group}
	c.forgetCoordinator(k)
	_, err := c.coordinator(ctx, k)
	return err
}

// coordinator is the one remembered, or looks it up.
func (c *Client) coordinator(ctx context.Context, k coordinatorKey) (*Broker, error) {
	if b := c.knownCoordinator(k); b != nil {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		b, err := c.findCoordinator(ctx, k)
		if err == nil {
			return b, nil
		}
		err = fmt.Errorf("looking for the coordinator of %v: %w", k, err)
		if !wire.Classify(err).Has(wire.Retriable) || attempt > c.cfg.Admin.Retry.Max {
			return nil, err
		}
		if over := c.sleep(ctx, c.adminWait(attempt)); over != nil {
			return nil, fmt.Errorf("%w (%w)", err, over)
		}
	}
}

func (c *Client) knownCoordinator(k coordinatorKey) *Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, known := c.coordinators[k]; known {
		return c.nodes[id] // nil when it has left the cluster
	}
	return nil
}

func (c *Client) forgetCoordinator(k coordinatorKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.coordinators, k)
}

// findCoordinator asks brokers in turn until one answers. A coordinator that metadata do not tell
// of yet is one that is not available.
func (c *Client) findCoordinator(ctx context.Context, k coordinatorKey) (*Broker, error) {
	id, err := c.askForCoordinator(ctx, k)
	if err != nil {
		return nil, err
	}
	if c.node(id) == nil {
		if err := c.RefreshMetadata(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.nodes[id]
	if b == nil {
		return nil, fmt.Errorf("it is node %d, which the cluster does not list: %w", id, wire.ErrCoordinatorNotAvailable)
	}
	c.coordinators[k] = id
	return b, nil
}

func (c *Client) askForCoordinator(ctx context.Context, k coordinatorKey) (int32, error) {
	last := ErrNoBrokers
	for _, b := range c.candidates() {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorType = int8(k.kind)
		req.CoordinatorKey, req.CoordinatorKeys = k.name, []string{k.name} // before and from version 4
		resp, err := b.Request(ctx, req)
		if err == nil {
			r, ok := resp.(*kmsg.FindCoordinatorResponse)
			if !ok {
				return -1, fmt.Errorf("broker %s answered FindCoordinator with %T", b.addr, resp)
			}
			return coordinatorIn(r, k)
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return -1, last
}

// coordinatorIn reads an answer of either shape.
func coordinatorIn(r *kmsg.FindCoordinatorResponse, k coordinatorKey) (int32, error) {
	if r.Version < 4 {
		return r.NodeID, wire.ErrorWith(r.ErrorCode, r.ErrorMessage)
	}
	for i := range r.Coordinators {
		if a := &r.Coordinators[i]; a.Key == k.name {
			return a.NodeID, wire.ErrorWith(a.ErrorCode, a.ErrorMessage)
		}
	}
	if r.ErrorCode != 0 { // some brokers refuse the whole
		return -1, wire.ErrorWith(r.ErrorCode, r.ErrorMessage)
	}
	return -1, &answerError{"the answer leaves it out"}
}

// askCoordinator sends a request to a coordinator and has read judge the answer. It looks the
// coordinator up again after NOT_COORDINATOR and its kin and when the broker cannot be reached,
// and retries, with backoff, what may pass; within Admin.Timeout. make gives a new request for
// every try.
func (c *Client) askCoordinator(ctx context.Context, k coordinatorKey, make func() kmsg.Request, read func(kmsg.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Admin.Timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := c.askCoordinatorOnce(ctx, k, make(), read)
		class := wire.Classify(err)
		if err == nil || !class.Has(wire.Retriable) || attempt > c.cfg.Admin.Retry.Max {
			return err
		}
		if class.Has(wire.RefreshCoordinator) || class.Has(wire.RefreshMetadata) {
			c.forgetCoordinator(k)
		}
		if over := c.sleep(ctx, c.adminWait(attempt)); over != nil {
			return fmt.Errorf("%w (%w)", err, over)
		}
	}
}

func (c *Client) askCoordinatorOnce(ctx context.Context, k coordinatorKey, req kmsg.Request, read func(kmsg.Response) error) error {
	b, err := c.coordinator(ctx, k)
	if err != nil {
		return err
	}
	resp, err := b.Request(ctx, req)
	if err != nil {
		return err
	}
	return read(resp)
}
