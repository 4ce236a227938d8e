package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// What fails a transaction fails its commit; after the abort the producer goes on, from sequence 0
// of another epoch where a numbered batch was lost.
func TestAFailedTransactionCanOnlyBeAborted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fault  func(c *broker.Cluster)
		spoil  func(msgs []*ProducerMessage)
		want   error
		raises bool // in v1; the end of every transaction of v2 does
	}{
		{"P5: a batch before is missing", func(c *broker.Cluster) { c.FailProduce(45, 1) }, nil, wire.ErrOutOfOrderSequenceNumber, true},
		{"P11: the broker forgot the producer", func(c *broker.Cluster) { c.FailProduce(59, 1) }, nil, wire.ErrUnknownProducerID, true},
		{"the leader asks for it", func(c *broker.Cluster) { c.FailProduce(120, 1) }, nil, wire.ErrTransactionAbortable, true},
		{"the leader knows of no transaction", func(c *broker.Cluster) { c.FailProduce(48, 1) }, nil, wire.ErrInvalidTxnState, true},
		{"the leader knows a newer epoch, the coordinator does not", func(c *broker.Cluster) { c.FailProduce(47, 1) }, nil, wire.ErrInvalidProducerEpoch, true},
		{"a message is refused", func(c *broker.Cluster) { c.FailProduce(87, 1) }, nil, wire.ErrInvalidRecord, true},
		{"the coordinator refuses the partitions", func(c *broker.Cluster) { c.Fail(broker.Failure{Key: 24, Code: 29}) }, nil, wire.ErrTopicAuthorizationFailed, false},
		{"the coordinator refuses the end", func(c *broker.Cluster) { c.Fail(broker.Failure{Key: 26, Code: 120}) }, nil, wire.ErrTransactionAbortable, false},
		{"a message never reached a batch", func(*broker.Cluster) {}, func(msgs []*ProducerMessage) { msgs[0].Value = make([]byte, 2_000_000) }, nil, false},
	} {
		inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, second bool) {
			if second && tc.name == "the coordinator refuses the partitions" {
				return // it is not asked
			}
			t.Run(tc.name, func(t *testing.T) {
				seen := watchProduce(c)
				p := asyncProducer(t, c, txnConfig("x"))
				good := numbered(80, 1)
				transact(t, p, good[:40], true)
				first := seen()[0]

				begin(t, p)
				tc.fault(c)
				bad := numbered(200, 1)
				if tc.spoil != nil {
					tc.spoil(bad)
				}
				var out tally
				taken := 0
				for run := range slices.Chunk(bad, 50) {
					n, err := p.ProduceRun(within(t), run, &out)
					taken += n
					if err != nil {
						require.ErrorIs(t, err, ErrTransactionFailed)
						break
					}
				}
				err := p.CommitTransaction(within(t))
				require.ErrorIs(t, err, ErrTransactionFailed)
				if tc.want != nil {
					require.ErrorIs(t, err, tc.want)
				}
				_, err = p.ProduceRun(within(t), numbered(1, 1), nil)
				require.ErrorIs(t, err, ErrTransactionFailed)
				require.NoError(t, p.AbortTransaction(within(t)))
				require.Equal(t, taken, out.decided(), "every message has its outcome")

				inits := c.Requests(22)
				before := len(seen())
				transact(t, p, good[40:], true)
				next := seen()[before]
				require.Equal(t, second || tc.raises, next.epoch > first.epoch)
				if next.epoch > first.epoch {
					require.Zero(t, next.base, "P5: numbered from 0")
				}
				require.Equal(t, inits, c.Requests(22))
				require.Equal(t, texts(good), committed(t, c))
			})
		})
	}
}

func (o *tally) decided() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ok + o.bad
}

// What waits does not have to be sent first, nor does it wait for a leader that is away.
func TestAnAbortFailsWhatWaits(t *testing.T) {
	inBothVersions(t, 2, 2, func(t *testing.T, c *broker.Cluster, _ bool) {
		cfg := txnConfig("x")
		cfg.Producer.DeliveryTimeout = 0
		p := asyncProducer(t, c, cfg)
		all := numbered(80, 10)
		transact(t, p, all[:40], true)
		away := 1 - c.Coordinator("x")
		begin(t, p)
		c.Unreachable(away)
		for part := range int32(2) {
			require.NoError(t, c.MoveLeader("t", part, away))
		}
		var out tally
		var producing sync.WaitGroup
		accepted := 0
		producing.Go(func() { // ends with the transaction
			var err error
			accepted, err = p.ProduceRun(within(t), numbered(5000, 10), &out)
			assert.True(t, errors.Is(err, ErrTransactionEnding) || errors.Is(err, ErrNoTransaction), "%v", err)
		})
		require.Eventually(t, func() bool { return p.Stats().Open >= 500 }, patience, time.Millisecond)
		start := time.Now()
		require.NoError(t, p.AbortTransaction(within(t)))
		require.Less(t, time.Since(start), patience/2)
		producing.Wait()
		require.Positive(t, accepted)
		out.require(t, 0, accepted)
		for _, err := range out.errs {
			require.ErrorIs(t, err, ErrTransactionAborted)
		}
		require.Zero(t, p.Stats().Open)
		c.Reachable()
		transact(t, p, all[40:], true)
		require.ElementsMatch(t, texts(all), committed(t, c))
	})
}

func TestAnAbortWaitsForWhatIsInFlight(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		transact(t, p, numbered(20, 1), true)
		begin(t, p)
		c.Stall(0)
		produced, ended := c.Requests(0), c.Requests(26)
		var out tally
		_, err := p.ProduceRun(within(t), numbered(20, 1), &out)
		require.NoError(t, err)
		require.NoError(t, c.AwaitRequests(within(t), 0, produced+1))
		ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.AbortTransaction(ctx), context.DeadlineExceeded)
		require.Equal(t, ended, c.Requests(26), "the end is not asked for")
		require.ErrorIs(t, p.CommitTransaction(within(t)), ErrTransactionEnding)
		c.Resume()
		require.NoError(t, p.AbortTransaction(within(t)))
		out.require(t, 20, 0)
		require.Equal(t, texts(numbered(20, 1)), committed(t, c))
	})
}

func TestACommitWhoseFlushIsCutShortCanBeRepeated(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		begin(t, p)
		c.Stall(0)
		all := numbered(40, 1)
		_, err := p.ProduceRun(within(t), all[:20], nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(within(t), 100*time.Millisecond)
		defer cancel()
		err = p.CommitTransaction(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrOutcomeUnknown, "nothing was asked for yet")
		require.Zero(t, c.Requests(26))
		_, err = p.ProduceRun(within(t), all[20:], nil)
		require.NoError(t, err, "the transaction is open")
		c.Resume()
		require.NoError(t, p.CommitTransaction(within(t)))
		require.Equal(t, texts(all), committed(t, c))
	})
}

func TestCloseAbortsTheOpenTransaction(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
		for _, state := range []string{"open", "failed", "never begun", "never initialised"} {
			p, err := NewAsyncProducer(c.Bootstrap(), txnConfig("x"))
			require.NoError(t, err)
			if state == "never begun" {
				require.NoError(t, p.InitTransactions(within(t)))
			}
			if state == "open" || state == "failed" {
				begin(t, p)
				if state == "failed" {
					c.FailProduce(87, 1)
				}
				_, err = p.ProduceRun(within(t), numbered(20, 1), nil)
				require.NoError(t, err)
				require.NoError(t, p.Flush(within(t)))
			}
			require.NoError(t, p.Close(within(t)), state)
		}
		require.EqualValues(t, 2, c.Requests(26))
		require.Empty(t, committed(t, c))
	})
}

func TestCloseWithATransactionIsBounded(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
		p, err := NewAsyncProducer(c.Bootstrap(), txnConfig("x"))
		require.NoError(t, err)
		begin(t, p)
		_, err = p.ProduceRun(within(t), numbered(20, 1), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		var out tally
		c.Unreachable(0)
		_, err = p.ProduceRun(within(t), numbered(20, 1), &out)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.Error(t, p.Close(ctx), "it could not abort")
		require.Less(t, time.Since(start), 5*time.Second)
		out.require(t, 0, 20)
		c.Reachable()
	})
}

// Offsets of a group become visible with the commit, or not at all.
func TestOffsetsInATransaction(t *testing.T) {
	inBothVersions(t, 3, 3, func(t *testing.T, c *broker.Cluster, second bool) {
		p := asyncProducer(t, c, txnConfig("x"))
		group := GroupMetadata{GroupID: "g"}
		for i, commit := range []bool{true, false, true} {
			begin(t, p)
			_, err := p.ProduceRun(within(t), numbered(3, 3), nil)
			require.NoError(t, err)
			require.NoError(t, p.SendOffsetsToTransaction(within(t), nil, group), "none is nothing")
			require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{
				{Topic: "t", Partition: 0, Offset: int64(10 + i), Metadata: "m"}, {Topic: "t", Partition: 2, Offset: int64(20 + i), LeaderEpoch: 3},
			}, group))
			if commit {
				require.NoError(t, p.CommitTransaction(within(t)))
			} else {
				require.NoError(t, p.AbortTransaction(within(t)))
			}
			want := map[string]int64{"t/0": 10, "t/2": 20}
			if i == 2 {
				want = map[string]int64{"t/0": 12, "t/2": 22}
			}
			require.Equal(t, want, groupOffsets(t, within(t), p.client, "g"))
		}
		begin(t, p) // offsets alone
		require.NoError(t, p.SendOffsetsToTransaction(within(t), []GroupOffset{{Topic: "t", Partition: 1, Offset: 99}}, group))
		require.NoError(t, p.CommitTransaction(within(t)))
		require.EqualValues(t, 99, groupOffsets(t, within(t), p.client, "g")["t/1"])
		if second {
			require.Zero(t, c.Requests(25))
		}
	})
}

// groupOffsets are the committed offsets of a group, by topic/partition.
func groupOffsets(t testing.TB, ctx context.Context, cl *Client, group string) map[string]int64 {
	out := map[string]int64{}
	require.NoError(t, cl.askCoordinator(ctx, coordinatorKey{coordinatorOfGroup, group}, func() kmsg.Request {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group, req.RequireStable = group, true
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = group
		req.Groups = append(req.Groups, g)
		return req
	}, func(r kmsg.Response) error {
		resp := r.(*kmsg.OffsetFetchResponse)
		clear(out)
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				if err := wire.ErrorFor(p.ErrorCode); err != nil {
					return err
				}
				out[fmt.Sprint(topic.Topic, "/", p.Partition)] = p.Offset
			}
		}
		for _, g := range resp.Groups {
			if err := wire.ErrorFor(g.ErrorCode); err != nil {
				return err
			}
			for _, topic := range g.Topics {
				for _, p := range topic.Partitions {
					if err := wire.ErrorFor(p.ErrorCode); err != nil {
						return err
					}
					out[fmt.Sprint(topic.Topic, "/", p.Partition)] = p.Offset
				}
			}
		}
		return nil
	}))
	return out
}

func TestRefusedOffsetsFailTheTransaction(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault broker.Failure
		group GroupMetadata
		want  error
	}{
		{"of a member of another generation", broker.Failure{}, GroupMetadata{GroupID: "g", MemberID: "m", GenerationID: 3}, wire.ErrIllegalGeneration},
		{"of a member that was replaced", broker.Failure{Key: 28, Code: 82}, GroupMetadata{GroupID: "g", InstanceID: "i"}, wire.ErrFencedInstanceID},
		{"not allowed", broker.Failure{Key: 28, Code: 30}, GroupMetadata{GroupID: "g"}, wire.ErrGroupAuthorizationFailed},
		{"to be aborted", broker.Failure{Key: 28, Code: 120}, GroupMetadata{GroupID: "g"}, wire.ErrTransactionAbortable},
		{"without a group", broker.Failure{Key: 28, Code: 24}, GroupMetadata{GroupID: "g"}, wire.ErrInvalidGroupID},
	} {
		inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, _ bool) {
			t.Run(tc.name, func(t *testing.T) {
				p := asyncProducer(t, c, txnConfig("x"))
				begin(t, p)
				if tc.fault.Key != 0 {
					c.Fail(tc.fault)
				}
				offsets := []GroupOffset{{Topic: "t", Offset: 1}}
				err := p.SendOffsetsToTransaction(within(t), offsets, tc.group)
				require.ErrorIs(t, err, ErrTransactionFailed)
				require.ErrorIs(t, err, tc.want)
				require.ErrorIs(t, p.CommitTransaction(within(t)), ErrTransactionFailed)
				require.NoError(t, p.AbortTransaction(within(t)))
				begin(t, p)
				require.NoError(t, p.SendOffsetsToTransaction(within(t), offsets, GroupMetadata{GroupID: "other"}))
				require.NoError(t, p.CommitTransaction(within(t)))
			})
		})
	}
}

// A transaction that was open for too long was aborted by the cluster. With v2 that is all; with v1
// it is not to be told from being fenced.
func TestATransactionThatTimedOut(t *testing.T) {
	inBothVersions(t, 1, 1, func(t *testing.T, c *broker.Cluster, second bool) {
		cfg := txnConfig("x")
		cfg.Producer.Transaction.Timeout = 100 * time.Millisecond
		p := asyncProducer(t, c, cfg)
		begin(t, p)
		_, err := p.ProduceRun(within(t), numbered(10, 1), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		require.Eventually(t, func() bool { // the abort's marker is in the log
			_, end, err := c.Offsets("t", 0)
			_, _ = p.client.GetOffset(within(t), "t", 0, OffsetNewest) // lets the broker look at its clock
			return err == nil && end > 10
		}, patience, 10*time.Millisecond)
		err = p.CommitTransaction(within(t))
		if !second {
			require.ErrorIs(t, err, ErrProducerFenced)
			require.Empty(t, committed(t, c))
			return
		}
		require.ErrorIs(t, err, ErrTransactionFailed)
		require.NotErrorIs(t, err, ErrOutcomeUnknown)
		require.NoError(t, p.AbortTransaction(within(t)))
		transact(t, p, numbered(10, 1), true)
		require.Equal(t, texts(numbered(10, 1)), committed(t, c))
	})
}

// Brokers before KIP-447 cannot check a member, and before KIP-360 not raise an epoch.
func TestTransactionsOnOldBrokers(t *testing.T) {
	c, err := broker.Start(broker.Options{Version: "2.1"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("t", 1, nil))
	p := asyncProducer(t, c, txnConfig("x"))
	all := numbered(40, 1)
	transact(t, p, all[:20], true)
	transact(t, p, numbered(20, 1), false)
	begin(t, p)
	offsets := []GroupOffset{{Topic: "t", Offset: 1}}
	require.ErrorIs(t, p.SendOffsetsToTransaction(within(t), offsets, GroupMetadata{GroupID: "g", MemberID: "m"}), errGroupTooOld)
	require.NoError(t, p.AbortTransaction(within(t)))
	transact(t, p, all[20:], true)
	begin(t, p)
	c.FailProduce(87, 1)
	_, err = p.ProduceRun(within(t), numbered(1, 1), nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.CommitTransaction(within(t)), ErrTransactionFailed)
	err = p.AbortTransaction(within(t))
	require.ErrorIs(t, err, ErrProducerFailed)
	require.ErrorIs(t, err, errCannotRaise)
	require.Equal(t, texts(all), committed(t, c))
}

// Whatever goes wrong: every message has an outcome, and readers see the transactions whose commit
// was confirmed, each of them whole and once, and no others.
func TestTransactionsThroughRandomFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom([]string{"3.9", ""}).Draw(rt, "version")
		seed := rapid.Uint64().Draw(rt, "seed")
		c, err := broker.Start(broker.Options{Nodes: 3, Version: version})
		require.NoError(rt, err)
		defer c.Close()
		require.NoError(rt, c.CreateTopic("t", 3, nil))
		p, err := NewAsyncProducer(c.Bootstrap(), txnConfig("x"))
		require.NoError(rt, err)
		random := rand.New(rand.NewPCG(seed, 1))
		var faults []*broker.Fault
		var want []string
		for round := range 8 {
			require.NoError(rt, p.BeginTransaction(within(t)))
			var out tally
			sent := 0
			for range 3 {
				faults = append(faults, strike(c, random)...)
				msgs := numbered(40, 7)
				for i, m := range msgs {
					m.Value = fmt.Appendf(nil, "%d/%d", round, sent+i)
				}
				n, err := p.ProduceRun(within(t), msgs, &out)
				if sent += n; err != nil {
					require.ErrorIs(rt, err, ErrTransactionFailed)
					break
				}
			}
			if random.IntN(4) == 0 {
				require.NoError(rt, p.AbortTransaction(within(t)))
			} else if err := p.CommitTransaction(within(t)); err != nil {
				require.ErrorIs(rt, err, ErrTransactionFailed)
				require.NoError(rt, p.AbortTransaction(within(t)))
			} else {
				require.Equal(rt, sent, out.ok)
				for i := range sent {
					want = append(want, fmt.Sprintf("%d/%d", round, i))
				}
			}
			require.Equal(rt, sent, out.ok+out.bad, "outcomes")
		}
		require.NoError(rt, p.Close(within(t)))
		for _, f := range faults {
			f.Remove()
		}
		c.LoseAnswers(0, 0)
		got := committed(t, c)
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(rt, want, got)
	})
}

// strike lets something go wrong, or not.
func strike(c *broker.Cluster, random *rand.Rand) []*broker.Fault {
	retriable := []int16{6, 7, 19, 20, 51}
	switch random.IntN(9) {
	case 0:
		return []*broker.Fault{c.FailProduce(retriable[random.IntN(len(retriable))], 1+random.IntN(3))}
	case 1:
		return []*broker.Fault{c.FailProduce([]int16{87, 120, 45, 59}[random.IntN(4)], 1)}
	case 2:
		c.LoseAnswers(0, 1)
	case 3:
		c.LoseAnswers(26, 1)
	case 4:
		c.CloseConnections()
	case 5:
		c.MoveCoordinators()
	case 6:
		_ = c.MoveLeader("t", random.Int32N(3), random.Int32N(3))
	}
	return nil
}
