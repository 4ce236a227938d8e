package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// A commit that fails in a way that may pass is tried again after the backoff of admin.retry, and
// waits for nothing else; how long the one took that was taken is told.
func TestCommitsAreRetriedWithBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name  string
		retry RetryConfig
		waits time.Duration // together
	}{
		{"doubling up to maxBackoff", RetryConfig{Max: 10, Backoff: 100 * ms, MaxBackoff: 350 * ms}, (100 + 200 + 350 + 350) * ms},
		{"as the user says", RetryConfig{Max: 10, BackoffFunc: func(n int) time.Duration { return time.Duration(n) * time.Second }}, (1 + 2 + 3 + 4) * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			drive(t, &coordination{}, ReaderConfig{}, func(c *Config) { c.Admin.Retry = tc.retry }, func(d *driven) {
				const answer = 7 * ms
				codes := []int16{
					wire.ErrCoordinatorLoadInProgress.Code, wire.ErrCoordinatorLoadInProgress.Code,
					wire.ErrCoordinatorNotAvailable.Code, wire.ErrNotCoordinator.Code, 0,
				}
				tries := len(codes)
				commits := committing(func(string, int32) int16 { c := codes[0]; codes = codes[1:]; return c })
				d.instead = func(raw rawserver.Request) *rawserver.Reply {
					reply := commits(raw)
					if reply != nil {
						reply.Delay = answer
					}
					return reply
				}
				d.in(4)
				d.holds(in0)
				began := time.Now()
				require.NoError(t, d.settle(d.ctx, []group.Offset{d.marked(in0, 1)}, nil))
				require.Equal(t, tc.waits+time.Duration(tries)*answer, time.Since(began))
				s := d.r.Stats()
				require.EqualValues(t, 1, s.Commits)
				require.EqualValues(t, 1, s.CommitLatency.Count())
				require.EqualValues(t, answer, s.CommitLatency.Max())
			})
		})
	}
}

// Every rebalance that a member comes through is a value of RebalanceLatency, and a copy of it
// does not change any more.
func TestHowLongRebalancesTake(t *testing.T) {
	drive(t, &coordination{}, ReaderConfig{}, nil, func(d *driven) {
		require.Zero(t, d.r.Stats().RebalanceLatency.Count())
		time.Sleep(3 * time.Second) // on the virtual clock, as those below
		d.publish(group.Status{Settled: true})
		first := d.r.Stats()
		time.Sleep(time.Hour)
		d.publish(group.Status{})
		time.Sleep(time.Second)
		d.publish(group.Status{})
		d.publish(group.Status{Settled: true})
		s := d.r.Stats()
		require.EqualValues(t, 2, s.Rebalances)
		require.Equal(t, time.Second, s.LastRebalance)
		require.EqualValues(t, 2, s.RebalanceLatency.Count())
		require.EqualValues(t, time.Second, s.RebalanceLatency.Min())
		require.EqualValues(t, 3*time.Second, s.RebalanceLatency.Max())
		require.EqualValues(t, 1, first.RebalanceLatency.Count())
	})
}
