package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// answering gives OffsetFetch's answers, one after the other, the last one again and again.
func answering(answers ...func(*kmsg.OffsetFetchResponse)) func(rawserver.Request) *rawserver.Reply {
	return func(raw rawserver.Request) *rawserver.Reply {
		if raw.Key != int16(kmsg.OffsetFetch) {
			return nil
		}
		resp := committedNothing()
		answers[0](resp)
		if len(answers) > 1 {
			answers = answers[1:]
		}
		reply := rawserver.Respond(raw, resp)
		return &reply
	}
}

func committedAlready(r *kmsg.OffsetFetchResponse) {
	r.Groups[0].Topics[0].Partitions[0].Offset, r.Groups[0].Topics[0].Partitions[0].LeaderEpoch = 1, 3
}

// What is held changes as the member orders.
func TestWhatIsHeld(t *testing.T) {
	var hooks []string
	var hook func(d *driven)
	var at *driven
	cfg := ReaderConfig{
		OnAssigned: func(int32, []TopicPartition) { hooks = append(hooks, "assigned") },
		OnRevoked: func(int32, []TopicPartition) {
			hooks = append(hooks, "revoked")
			if hook != nil {
				hook(at)
			}
		},
	}
	for says, test := range map[string]func(d *driven){
		"a partition goes on at the offset and under the epoch that the group has committed, which is not committed again": func(d *driven) {
			d.instead = answering(committedAlready)
			d.in(4)
			require.NoError(d.t, d.takeUp(d.ctx, holdIn(1, 0)))
			require.Equal(d.t, []positionAt{{topicPartition{"in", 0}, 1, 3}}, d.r.positions())
			require.EqualValues(d.t, 3, d.r.parts[0].lastEpoch)
			require.NoError(d.t, d.commit(d.ctx, []Message{{Topic: "in", Offset: 0, assignment: d.tag}}))
			require.Zero(d.t, d.times(kmsg.OffsetCommit))
		},
		"messages of an assignment are not those of the next one": func(d *driven) {
			d.instead = answering(committedAlready)
			require.NoError(d.t, d.takeUp(d.ctx, holdIn(1, 0)))
			old := Message{Topic: "in", Offset: 7, assignment: d.tag}
			d.giveUp(d.ctx, holdIn(2), false)
			require.NoError(d.t, d.takeUp(d.ctx, holdIn(3, 0)))
			_, stale, err := d.mark([]Message{old})
			require.NoError(d.t, err)
			require.Len(d.t, stale, 1)
			old.assignment = d.tag
			_, stale, err = d.mark([]Message{old})
			require.NoError(d.t, err)
			require.Empty(d.t, stale)
		},
		"offsets that the coordinator cannot tell a member that joins anew are asked for again": func(d *driven) {
			d.instead = answering(func(r *kmsg.OffsetFetchResponse) { r.Groups[0].ErrorCode = wire.ErrUnknownMemberID.Code }, committedAlready)
			require.NoError(d.t, d.takeUp(d.ctx, holdIn(1, 0)))
			require.Equal(d.t, 2, d.times(kmsg.OffsetFetch))
		},
		"offsets that are left out of the answer three times are not there": func(d *driven) {
			d.instead = answering(func(r *kmsg.OffsetFetchResponse) { r.Groups[0].Topics = nil })
			ctx, cancel := context.WithTimeout(d.ctx, time.Minute)
			defer cancel()
			require.ErrorIs(d.t, d.takeUp(ctx, holdIn(1, 0)), errLeftOut)
			require.NoError(d.t, ctx.Err())
			require.Equal(d.t, suspectTries, d.times(kmsg.OffsetFetch))
		},
		"only an assignment is told, not what remains while the member joins": func(d *driven) {
			d.holds(in0)
			rest := holdIn(2, 0)
			rest.Adopt = false
			require.NoError(d.t, d.takeUp(d.ctx, rest))
			require.Empty(d.t, hooks)
			require.NoError(d.t, d.takeUp(d.ctx, holdIn(3, 0)))
			require.Equal(d.t, []string{"assigned"}, hooks)
		},
		"what is lost is nobody's to commit, even when its function is called": func(d *driven) {
			d.holds(in0)
			d.marked(in0, 1)
			d.in(4)
			hook = func(d *driven) {
				require.NoError(d.t, d.commit(d.ctx, []Message{{Topic: "in", Offset: 8, assignment: d.tag}}), "on the interval")
			}
			d.set.CommitInterval = time.Hour
			lost := holdIn(2)
			lost.Lost = true
			d.giveUp(d.ctx, lost, false)
			require.Equal(d.t, []string{"revoked"}, hooks)
			require.EqualValues(d.t, 1, d.r.Stats().StaleCommits)
			require.Zero(d.t, d.times(kmsg.OffsetCommit))
		},
		"what is given up in no generation cannot be committed by its function, which is not held up": func(d *driven) {
			d.holds(in0)
			hook = func(d *driven) {
				began := time.Now()
				var stale *StaleCommitError
				require.ErrorAs(d.t, d.commit(d.ctx, []Message{{Topic: "in", Offset: 8, assignment: d.tag}}), &stale)
				require.Zero(d.t, time.Since(began))
			}
			d.giveUp(d.ctx, holdIn(2), false)
			require.Equal(d.t, []string{"revoked"}, hooks)
		},
		"commits of what comes again later wait as any": func(d *driven) {
			d.holds(in0)
			d.giveUp(d.ctx, holdIn(2), false)
			d.holds(in0)
			o := d.marked(in0, 1)
			waits := d.hangs(func() error { return d.settle(d.ctx, []group.Offset{o}, nil) })
			d.in(4)
			require.NoError(d.t, d.now(waits))
		},
		"a commit that waits while a member leaves is told when nothing can come of it": func(d *driven) {
			d.holds(in0)
			o := d.marked(in0, 1)
			waits := d.hangs(func() error { return d.settle(d.ctx, []group.Offset{o}, nil) })
			began := time.Now()
			d.giveUp(d.ctx, holdIn(2), true)
			require.Equal(d.t, drainWithin, time.Since(began), "it waited for a generation itself")
			var stale *StaleCommitError
			require.ErrorAs(d.t, d.now(waits), &stale)
		},
		"and when its place is lost meanwhile": func(d *driven) {
			d.holds(in0)
			o := d.marked(in0, 1)
			d.leaving, d.leaveBy = true, time.Now().Add(time.Hour)
			waits := d.hangs(func() error { return d.settle(d.ctx, []group.Offset{o}, nil) })
			lost := holdIn(2)
			lost.Lost = true
			require.False(d.t, d.carryOut(group.Orders{Reconcile: &lost}))
			var stale *StaleCommitError
			require.ErrorAs(d.t, d.now(waits), &stale)
		},
		"a member that leaves takes nothing up": func(d *driven) {
			d.leaving, d.leaveBy = true, time.Now().Add(time.Hour)
			order := holdIn(2, 0)
			require.False(d.t, d.carryOut(group.Orders{Reconcile: &order}))
			synctest.Wait()
			require.Nil(d.t, d.holding)
			require.Zero(d.t, d.times(kmsg.OffsetFetch))
		},
		"a change that is broken off has not failed": func(d *driven) {
			d.instead = silent(kmsg.OffsetFetch)
			d.reconcile(holdIn(2, 0))
			synctest.Wait()
			d.holding.stop()
			<-d.holding.done
			synctest.Wait()
			require.NoError(d.t, d.why())
			require.Empty(d.t, d.is.held)
		},
	} {
		t.Run(says, func(t *testing.T) {
			hooks, hook = nil, nil
			drive(t, &coordination{}, cfg, nil, func(d *driven) {
				at = d
				test(d)
			})
		})
	}
}

// What passes is tried again and has the coordinator looked up, what does not is said; answers against
// the protocol are put up with twice in a row, request by request.
func TestWhatIsMadeOfErrors(t *testing.T) {
	broken := func(t *testing.T, err error) bool {
		var b *brokenError
		return errors.As(err, &b)
	}
	passes := func(err error) bool { return wire.Classify(err).Has(wire.Retriable | wire.RefreshCoordinator) }
	m := &membership{suspects: map[kmsg.Key]int{}}
	bad := &conn.DecodeError{}
	require.True(t, passes(m.judge(kmsg.Heartbeat, context.DeadlineExceeded)), "a wait of the client's own")
	require.False(t, passes(m.judge(kmsg.Heartbeat, wire.ErrGroupAuthorizationFailed)))
	for range suspectTries - 1 {
		require.True(t, passes(m.judge(kmsg.Heartbeat, bad)))
	}
	require.True(t, passes(m.judge(kmsg.SyncGroup, bad)), "another request")
	require.NoError(t, m.judge(kmsg.Heartbeat, nil))
	for range suspectTries - 1 {
		require.True(t, passes(m.judge(kmsg.Heartbeat, bad)), "forgiven by a good answer")
	}
	for range 2 {
		err := m.judge(kmsg.Heartbeat, bad)
		require.False(t, passes(err))
		require.True(t, broken(t, err))
	}
}

// A request that waits for the others of the group holds nothing else up.
func TestLongRequestsHaveAConnectionOfTheirOwn(t *testing.T) {
	drive(t, &coordination{instead: silent(kmsg.JoinGroup)}, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		join, beat := kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrHeartbeatRequest()
		d.work(func() { d.send(group.Send{Serial: 1, Request: join, Long: true, Timeout: time.Minute}) })
		synctest.Wait()
		d.work(func() { d.send(group.Send{Serial: 2, Request: beat}) })
		synctest.Wait()
		require.Equal(t, []int{2}, d.is.answered)
		d.joins.cut()
		synctest.Wait()
		require.Equal(t, []int{2, 1}, d.is.answered, "what waits on it ends with it")
		require.NoError(t, d.is.errs[0])
		require.True(t, wire.Classify(d.is.errs[1]).Has(wire.Retriable))
	})
}

// No connection is opened once the membership has ended.
func TestALineThatIsClosed(t *testing.T) {
	drive(t, &coordination{}, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		b, err := d.r.client.coordinator(d.ctx, d.membership.key)
		require.NoError(t, err)
		l := newLine()
		c, err := l.to(d.ctx, b)
		require.NoError(t, err)
		l.close()
		require.Error(t, c.Err())
		_, err = l.to(d.ctx, b)
		require.ErrorIs(t, err, errLeft)
	})
}

// A coordinator whose connection ends is looked up again; one that says no is not.
func TestWhenTheCoordinatorIsLookedUpAgain(t *testing.T) {
	closes := true
	drive(t, &coordination{instead: func(req rawserver.Request) *rawserver.Reply {
		if closes && req.Key == int16(kmsg.Heartbeat) {
			return &rawserver.Reply{Close: true}
		}
		return nil
	}}, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		ask := func() error {
			_, err := d.ask(d.ctx, &d.talks, kmsg.NewPtrHeartbeatRequest(), 0)
			return err
		}
		require.Error(t, ask())
		closes = false
		require.NoError(t, ask())
		require.Equal(t, 2, d.times(kmsg.FindCoordinator))
		require.NoError(t, ask())
		require.Equal(t, 2, d.times(kmsg.FindCoordinator))
	})
}

// A coordinator that does not let a member go is not waited for longer than that takes.
func TestLeavingIsNotWaitedForLong(t *testing.T) {
	c := &coordination{instead: silent(kmsg.LeaveGroup)}
	piped(t, c, func(t *testing.T, cfg *Config) {
		r := c.member(t, cfg)
		_, err := r.FetchMessage(t.Context())
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, r.Close())
		require.Equal(t, leaveWithin, time.Since(began))
		require.Equal(t, 1, c.times(kmsg.LeaveGroup))
	})
}
