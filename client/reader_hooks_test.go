package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/workloads/broker"
)

// A function of the user's that never returns does not keep Close from returning: what is marked is
// committed, the group is left, and the error names the function.
func TestClosingDoesNotWaitForHooksForEver(t *testing.T) {
	const bound = 300 * time.Millisecond
	for _, tc := range []struct {
		hook string
		set  func(cfg *ReaderConfig, stuck func(int32, []TopicPartition))
	}{
		{"ReaderConfig.OnRevoked", func(cfg *ReaderConfig, stuck func(int32, []TopicPartition)) { cfg.OnRevoked = stuck }},
		{"ReaderConfig.OnAssigned", func(cfg *ReaderConfig, stuck func(int32, []TopicPartition)) { cfg.OnAssigned = stuck }},
	} {
		t.Run(tc.hook, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 1, func(c *Config) {
				c.Consumer.Group.RebalanceTimeout, c.Consumer.Group.CommitInterval = bound, time.Hour
			})
			c.writeAll(1, 0, 10)
			release := make(chan struct{})
			defer close(release)
			var cfg ReaderConfig
			called := make(chan struct{}, 10)
			tc.set(&cfg, func(int32, []TopicPartition) { called <- struct{}{}; <-release })
			h := c.member(cfg)
			want := int64(0) // where it starts, which is committed before OnAssigned
			if cfg.OnRevoked != nil {
				require.NoError(t, h.r.CommitMessages(c.ctx, h.read(0)))
				want = 1
			} else {
				<-called
			}
			leaves := c.cluster.Requests(int16(kmsg.LeaveGroup))
			began := time.Now()
			err := h.r.Close()
			require.Less(t, time.Since(began), 2*bound+leaveWithin)
			require.GreaterOrEqual(t, time.Since(began), bound)
			var stuck *HookError
			require.ErrorAs(t, err, &stuck)
			require.Equal(t, HookError{tc.hook, bound}, *stuck)
			require.ErrorContains(t, err, tc.hook+" had not returned 300ms after")
			require.Equal(t, leaves+1, c.cluster.Requests(int16(kmsg.LeaveGroup)))
			require.Equal(t, []int64{want}, c.committed(0))
			require.NoError(t, h.r.Close(), "the second one does nothing")
			c.shared([]int{1}, c.member(ReaderConfig{}))
		})
	}
}

func TestClosingWaitsForHooksThatReturn(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, func(c *Config) { c.Consumer.Group.RebalanceTimeout = 10 * time.Second })
	called, release := make(chan struct{}), make(chan struct{})
	h := c.member(ReaderConfig{OnRevoked: func(int32, []TopicPartition) { close(called); <-release }})
	c.shared([]int{1}, h)
	closed := make(chan error, 1)
	go func() { closed <- h.r.Close() }()
	<-called
	require.Never(t, func() bool { return len(closed) > 0 }, 100*time.Millisecond, 10*time.Millisecond, "it waits for the hook")
	close(release)
	require.NoError(t, <-closed)
}

// Also when the client was closed before, which ends a membership without a word to the group.
func TestClosingAfterTheClientDoesNotWaitForHooksForEver(t *testing.T) {
	c := newCrew(t, broker.Options{}, 1, func(c *Config) { c.Consumer.Group.RebalanceTimeout = 200 * time.Millisecond })
	release, called := make(chan struct{}), make(chan struct{})
	defer close(release)
	h := c.member(ReaderConfig{OnAssigned: func(int32, []TopicPartition) { close(called); <-release }})
	<-called
	require.NoError(t, h.c.Close())
	began := time.Now()
	var stuck *HookError
	require.ErrorAs(t, h.r.Close(), &stuck)
	require.Less(t, time.Since(began), 5*time.Second)
}

// A member that its application keeps from giving partitions up is thrown out, and closes in time all
// the same; no other hook is called while one has not returned.
func TestAHookThatHoldsTheRebalanceUp(t *testing.T) {
	c := newCrew(t, broker.Options{}, 2, func(c *Config) {
		c.Consumer.Group.RebalanceTimeout, c.Consumer.Group.Balancers = 300*time.Millisecond, Balancers{"range"}
	})
	release, calls := make(chan struct{}), make(chan struct{}, 10)
	defer close(release)
	one := c.member(ReaderConfig{OnRevoked: func(int32, []TopicPartition) { calls <- struct{}{}; <-release }})
	c.shared([]int{2}, one)
	two := c.member(ReaderConfig{})
	<-calls
	c.eventually(func() bool { return len(two.holding()) == 2 }, func() string { return "the other one has both" })
	began := time.Now()
	var stuck *HookError
	require.ErrorAs(t, one.r.Close(), &stuck)
	require.Less(t, time.Since(began), 4*time.Second)
	require.Empty(t, calls)
}

func TestHookErrorsAreTold(t *testing.T) {
	err := error(&HookError{Hook: "ReaderConfig.OnFetch", Waited: 15 * time.Second})
	require.ErrorContains(t, err, "ReaderConfig.OnFetch had not returned 15s after")
	var stuck *HookError
	require.True(t, errors.As(err, &stuck))
}
