package client

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
)

// What a commit that is waited for waits for, and what ends the wait.
func TestWhatACommitWaitsFor(t *testing.T) {
	settle := func(d *driven, o group.Offset) func() error {
		return func() error { return d.settle(d.ctx, []group.Offset{o}, nil) }
	}
	for says, test := range map[string]func(d *driven){
		"a generation": func(d *driven) {
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			d.in(4)
			require.NoError(d.t, d.now(waits))
			require.Equal(d.t, 1, d.times(kmsg.OffsetCommit))
		},
		"what ended the membership, at once": func(d *driven) {
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			d.fail(errTest)
			require.ErrorIs(d.t, d.now(waits), errTest)
		},
		"and the end of the reader rather than what had ended the membership before": func(d *driven) {
			o := d.marked(in0, 1)
			d.fail(errTest)
			require.ErrorIs(d.t, settle(d, o)(), errTest)
			close(d.closing)
			require.Equal(d.t, io.ErrClosedPipe, settle(d, o)())
		},
		"and that rather than that the partitions were given up then": func(d *driven) {
			d.fail(errTest)
			o := d.book.Due(nil, nil)
			d.membership.mu.Lock()
			d.book.Mark(group.Offset{Partition: in0, Tag: d.tag, Offset: 1})
			d.book.Close(in0)
			d.membership.mu.Unlock()
			require.Empty(d.t, o)
			require.ErrorIs(d.t, settle(d, group.Offset{Partition: in0, Tag: d.tag, Offset: 1})(), errTest)
		},
		"the end of the client": func(d *driven) {
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			go func() { _ = d.r.client.Close() }()
			require.ErrorIs(d.t, d.now(waits), ErrClosed)
		},
		"the end of the membership": func(d *driven) {
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			d.end()
			require.ErrorIs(d.t, d.now(waits), io.ErrClosedPipe)
		},
		"the end of the membership, while the coordinator does not answer": func(d *driven) {
			d.in(4)
			d.instead = silent(kmsg.OffsetCommit)
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			d.end()
			require.ErrorIs(d.t, d.now(waits), io.ErrClosedPipe)
		},
		"no generation when its partition is being given up: none will come": func(d *driven) {
			d.ending = map[group.Partition]bool{in0: true}
			var stale *StaleCommitError
			require.ErrorAs(d.t, settle(d, d.marked(in0, 1))(), &stale)
			require.Equal(d.t, []TopicPartition{{"in", 0}}, stale.Partitions)
			require.EqualValues(d.t, 1, d.r.Stats().StaleCommits)
		},
		"another generation than the one that was refused": func(d *driven) {
			d.in(4)
			codes := []int16{wire.ErrIllegalGeneration.Code, 0}
			d.instead = committing(func(string, int32) int16 { c := codes[0]; codes = codes[1:]; return c })
			waits := d.hangs(settle(d, d.marked(in0, 1)))
			require.Equal(d.t, []group.Identity{{MemberID: "me", Generation: 4}}, d.is.refused)
			time.Sleep(10 * time.Second) // on the virtual clock: long enough for any retry
			require.Equal(d.t, 1, d.times(kmsg.OffsetCommit), "the same is not tried again")
			d.in(5)
			require.NoError(d.t, d.now(waits))
		},
		"not when only the epoch is another one, which the member is about to learn": func(d *driven) {
			d.in(4)
			codes := []int16{wire.ErrStaleMemberEpoch.Code, 0}
			d.instead = committing(func(string, int32) int16 { c := codes[0]; codes = codes[1:]; return c })
			require.NoError(d.t, settle(d, d.marked(in0, 1))())
			synctest.Wait()
			require.Len(d.t, d.is.refused, 1)
		},
		"nobody's patience is without end": func(d *driven) {
			began := time.Now()
			require.ErrorIs(d.t, settle(d, d.marked(in0, 1))(), context.DeadlineExceeded)
			require.Equal(d.t, d.patience(), time.Since(began))
		},
		"an answer in which the partition is left out, three times": func(d *driven) {
			d.in(4)
			d.instead = func(raw rawserver.Request) *rawserver.Reply {
				if raw.Key != int16(kmsg.OffsetCommit) {
					return nil
				}
				reply := rawserver.Respond(raw, kmsg.NewPtrOffsetCommitResponse())
				return &reply
			}
			require.ErrorIs(d.t, settle(d, d.marked(in0, 1))(), errLeftOut)
			require.Equal(d.t, suspectTries, d.times(kmsg.OffsetCommit))
		},
		"not for what the coordinator has": func(d *driven) {
			d.in(4)
			require.NoError(d.t, settle(d, d.marked(in0, 1))())
			require.NoError(d.t, settle(d, d.marked(in0, 1))())
			require.Equal(d.t, 1, d.times(kmsg.OffsetCommit))
		},
	} {
		t.Run(says, func(t *testing.T) {
			drive(t, &coordination{}, ReaderConfig{}, nil, func(d *driven) {
				d.holds(in0)
				test(d)
			})
		})
	}
}

// Commits that nobody waits for: their failures are counted, they take their time at most, and other
// partitions' failures are not theirs.
func TestCommitsThatNobodyWaitsFor(t *testing.T) {
	const refused = 29 // no permission for the topic
	for _, tc := range []struct {
		says   string
		answer func(rawserver.Request) *rawserver.Reply
		do     func(d *driven)
		took   time.Duration
		errors int64
	}{
		{
			"the last one of partitions given up fails", committing(func(string, int32) int16 { return refused }),
			func(d *driven) { d.drain(d.ctx, []group.Partition{in0}, true) }, 0, 1,
		},
		{
			"the last one is not answered", silent(kmsg.OffsetCommit),
			func(d *driven) { d.drain(d.ctx, []group.Partition{in0}, true) }, drainWithin, 1,
		},
		{
			"that of a partition which stays fails meanwhile", committing(func(_ string, id int32) int16 { return int16(id) * refused }),
			func(d *driven) { d.drain(d.ctx, []group.Partition{in0}, true) }, 0, 0,
		},
		{
			"the last one of a member that does not wait for a generation is refused", committing(func(string, int32) int16 { return wire.ErrUnknownMemberID.Code }),
			func(d *driven) { d.drain(d.ctx, []group.Partition{in0}, false) }, 0, 1,
		},
		{
			"that of where partitions start fails", committing(func(string, int32) int16 { return refused }),
			func(d *driven) { d.commitStarts(d.ctx, []startAt{{committed: -1}}) }, 0, 1,
		},
		{
			"that of where partitions start is not answered", silent(kmsg.OffsetCommit),
			func(d *driven) { d.commitStarts(d.ctx, []startAt{{committed: -1}}) }, leaveWithin, 0,
		},
		{
			"that of the interval fails, twice", committing(func(string, int32) int16 { return refused }),
			func(d *driven) {
				d.work(d.commitPeriodically)
				time.Sleep(2*d.set.CommitInterval + time.Millisecond) // on the virtual clock: two turns
				d.end()
				d.workers.Wait()
			}, 2*time.Minute + time.Millisecond, 2,
		},
	} {
		t.Run(tc.says, func(t *testing.T) {
			drive(t, &coordination{instead: tc.answer}, ReaderConfig{}, func(c *Config) { c.Consumer.Group.CommitInterval = time.Minute }, func(d *driven) {
				t := d.t
				d.holds(in0, in1)
				d.marked(in0, 1)
				d.marked(in1, 1)
				d.in(4)
				began := time.Now()
				tc.do(d)
				require.Equal(t, tc.took, time.Since(began))
				require.Equal(t, tc.errors, d.r.Stats().CommitErrors)
			})
		})
	}
}

// A member that cannot commit and does not wait is told at once, by the refusal if there was one.
func TestCommitsWithoutPatience(t *testing.T) {
	drive(t, &coordination{instead: committing(func(string, int32) int16 { return wire.ErrUnknownMemberID.Code })}, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		d.holds(in0)
		d.marked(in0, 1)
		ctx, cancel := context.WithTimeout(d.ctx, time.Minute)
		defer cancel()
		require.ErrorIs(t, d.flush(ctx, nil, false), errNoGeneration)
		d.in(4)
		require.ErrorIs(t, d.flush(ctx, nil, false), wire.ErrUnknownMemberID)
		require.Equal(t, 1, d.times(kmsg.OffsetCommit))
	})
}

// One request names each topic once, whatever order the marks have, and counts when something of it
// was taken.
func TestOneCommitOfManyPartitions(t *testing.T) {
	var sent kmsg.OffsetCommitRequest
	code := int16(29)
	answer := committing(func(string, int32) int16 { return code })
	drive(t, &coordination{instead: func(raw rawserver.Request) *rawserver.Reply {
		if req, is := raw.Decode().(*kmsg.OffsetCommitRequest); is {
			sent = *req
		}
		return answer(raw)
	}}, ReaderConfig{}, nil, func(d *driven) {
		t := d.t
		for id := range int32(20) {
			for _, topic := range []string{"a", "b", "c"} {
				p := group.Partition{Topic: topic, ID: id}
				d.book.Open(p, d.tag, -1)
				d.marked(p, 1)
			}
		}
		d.in(4)
		require.ErrorIs(t, d.flush(d.ctx, nil, true), wire.ErrTopicAuthorizationFailed)
		require.Zero(t, d.r.Stats().Commits)
		require.Len(t, sent.Topics, 3)
		require.Len(t, sent.Topics[2].Partitions, 20)
		require.EqualValues(t, 19, sent.Topics[2].Partitions[19].Partition)
		code = 0
		require.NoError(t, d.flush(d.ctx, nil, true))
		require.EqualValues(t, 1, d.r.Stats().Commits)
	})
}

// ReadMessage does not return a message whose partition was given up since it was fetched.
func TestReadMessageLeavesOutWhatIsNotItsOwn(t *testing.T) {
	c := &coordination{}
	piped(t, c, func(t *testing.T, cfg *Config) {
		r := c.member(t, cfg)
		synctest.Wait()
		for range 60 { // seconds of the virtual clock
			if len(r.PartitionStates()) > 0 {
				break
			}
			time.Sleep(time.Second)
		}
		require.NotEmpty(t, r.PartitionStates())
		r.group.mu.Lock()
		r.group.book.Close(in0)
		r.group.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := r.ReadMessage(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, r.Stats().StaleCommits)
		require.NoError(t, r.Close())
	})
}
