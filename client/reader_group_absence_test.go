package client

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/workloads/broker"
)

// A member whose application does not ask for messages leaves the group, so that the others read its
// partitions, and joins again when it asks.
func TestAMemberWhoseApplicationDoesNotAskLeaves(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			c := newCrew(t, broker.Options{}, 2, func(c *Config) {
				c.Consumer.Group.Protocol, c.Consumer.Group.MaxPollInterval = protocol, 300*time.Millisecond
				c.Consumer.Group.CommitInterval = time.Hour
			})
			c.writeAll(2, 0, 10)
			lost := make(chan int32, 10)
			one := c.member(ReaderConfig{OnRevoked: func(generation int32, _ []TopicPartition) { lost <- generation }})
			for range 5 {
				m, err := one.r.FetchMessage(c.ctx)
				require.NoError(t, err)
				require.NoError(t, one.r.CommitMessages(c.ctx, m))
			}
			last, err := one.r.FetchMessage(c.ctx) // is dealt with for too long
			require.NoError(t, err)
			two := c.works(ReaderConfig{})
			c.shared([]int{2}, two)
			require.EqualValues(t, 1, one.r.Stats().Absences)
			require.Empty(t, one.holding())
			generation := int32(0)
			for len(lost) > 0 {
				generation = <-lost
			}
			require.EqualValues(t, -1, generation, "its place is lost")
			c.total(15) // what was marked was committed before it left
			require.NoError(t, one.r.CommitMessages(c.ctx, last))
			require.EqualValues(t, 1, one.r.Stats().StaleCommits)

			waited := make(chan error, 1)
			go func() {
				for {
					if _, err := one.r.FetchMessage(c.ctx); err != nil {
						waited <- err
						return
					}
				}
			}()
			c.shared([]int{1, 1}, one, two)
			require.NoError(t, one.r.Close())
			require.ErrorIs(t, <-waited, io.EOF)
			two.leave()
		})
	}
}

// After five minutes by default, not before, and not while the application waits for a message.
func TestAMemberIsAwayAfterFiveMinutes(t *testing.T) {
	for protocol, leave := range map[string]kmsg.Key{"classic": kmsg.LeaveGroup, "consumer": kmsg.ConsumerGroupHeartbeat} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &coordination{addr: "pipe:1", beat: 5 * time.Second}
				srv := rawserver.StartPipes(rawserver.Script{Handle: c.handle})
				defer srv.Close()
				cfg := NewConfig()
				cfg.Consumer.Group.Protocol, cfg.Consumer.MaxWait = protocol, 5*time.Second
				cfg.Net.Dialer = func(context.Context, string, string) (net.Conn, error) { return srv.Pipe() }
				r := c.member(t, cfg)
				ctx := context.Background()
				_, err := r.FetchMessage(ctx)
				require.NoError(t, err)
				time.Sleep(5*time.Minute - time.Second)
				require.Zero(t, r.Stats().Absences)
				require.Len(t, r.PartitionStates(), 1)
				time.Sleep(time.Minute/2 + 5*time.Second)
				require.EqualValues(t, 1, r.Stats().Absences)
				require.Empty(t, r.PartitionStates())
				left := c.times(leave)
				require.Positive(t, left)
				time.Sleep(time.Hour)
				require.Equal(t, left, c.times(leave), "it says nothing while it is away")
				_, err = r.FetchMessage(ctx) // what was not committed comes again
				require.NoError(t, err)
				waits, stop := context.WithTimeout(ctx, 20*time.Minute)
				defer stop()
				_, err = r.FetchMessage(waits)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.EqualValues(t, 1, r.Stats().Absences)
				require.Len(t, r.PartitionStates(), 1)
				require.NoError(t, r.Close())
			})
		})
	}
}
