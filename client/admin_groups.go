package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// DeleteGroups deletes consumer groups and what they have committed, one after the other, each within
// Admin.Timeout. One that does not exist is no error; one that still has members is refused (a
// KafkaError, NON_EMPTY_GROUP). The error names each group that could not be deleted.
func (c *Client) DeleteGroups(ctx context.Context, groups ...string) error {
	var errs []error
	for _, group := range groups {
		err := c.askCoordinator(ctx, coordinatorKey{coordinatorOfGroup, group},
			func() kmsg.Request {
				req := kmsg.NewPtrDeleteGroupsRequest()
				req.Groups = []string{group}
				return req
			}, readDeleted)
		if err != nil && !errors.Is(err, wire.ErrGroupIDNotFound) {
			errs = append(errs, fmt.Errorf("deleting group %q: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// readDeleted reads the answer about one group.
func readDeleted(resp kmsg.Response) error {
	r, ok := resp.(*kmsg.DeleteGroupsResponse)
	if !ok {
		return fmt.Errorf("answered DeleteGroups with %T", resp)
	}
	if len(r.Groups) != 1 {
		return fmt.Errorf("answered DeleteGroups of one group with %d", len(r.Groups))
	}
	return wire.ErrorFor(r.Groups[0].ErrorCode)
}
