package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// assignable is a reader without partitions, as a member of a group has it before it is given any.
func (b *readerBed) assignable() *Reader {
	r := b.reader(ReaderConfig{})
	require.Len(b.t, revokeAt(r, []topicPartition{{"in", 0}}), 1)
	return r
}

func starts(offset int64, parts ...topicPartition) (out []assignedAt) {
	for _, tp := range parts {
		out = append(out, assignedAt{tp, offset, -1})
	}
	return out
}

// twoTopics writes 100 messages to each of three partitions of two topics, in batches of ten.
func twoTopics(t *testing.T, change func(*Config)) (*readerBed, []topicPartition) {
	b := newReaderBed(t, broker.Options{Nodes: 2}, 3, change)
	require.NoError(t, b.cluster.CreateTopic("other", 3, nil))
	var parts []topicPartition
	for _, topic := range []string{"in", "other"} {
		for p := range int32(3) {
			parts = append(parts, topicPartition{topic, p})
			for i := 0; i < 100; i += 10 {
				b.writeTo(topic, p, values(i, i+10))
			}
		}
	}
	return b, parts
}

// Partitions of several topics, and what revoke says, is where the reader was.
func TestReaderAssignAndRevoke(t *testing.T) {
	b, parts := twoTopics(t, func(c *Config) { c.Consumer.MaxPartitionBytes = 2000 })
	r := b.assignable()
	r.assign(7, starts(FirstOffset, parts...))
	next := map[topicPartition]int64{}
	read := func(total int, assignments map[topicPartition]int32) {
		buf := make([]Message, 3)
		for n := 0; n < total; {
			got, err := r.FetchBatch(b.ctx, buf)
			require.NoError(t, err)
			for _, m := range buf[:got] {
				tp := topicPartition{m.Topic, m.Partition}
				require.Contains(t, assignments, tp, "nothing of what was revoked")
				require.Equal(t, assignments[tp], m.assignment)
				require.Equal(t, next[tp], m.Offset, "%v goes on where it was", tp)
				require.Equal(t, fmt.Sprintf("value %d", m.Offset), string(m.Value))
				next[tp]++
			}
			n += got
		}
	}
	all := map[topicPartition]int32{}
	for _, tp := range parts {
		all[tp] = 7
	}
	read(100, all)

	fetchesOf := r.Stats()
	gone := parts[1:5]
	stood, epochs := map[topicPartition]int64{}, map[topicPartition]int32{}
	for _, at := range revokeAt(r, gone) {
		stood[at.topicPartition], epochs[at.topicPartition] = at.offset, at.leaderEpoch
		delete(all, at.topicPartition)
	}
	require.Len(t, stood, 4)
	for tp, offset := range stood {
		if offset >= 0 { // else nothing was delivered of it
			require.Equal(t, next[tp], offset, "%v: the next message that the application would have got", tp)
		}
		require.False(t, holds(r, tp, 7))
	}
	require.Empty(t, revokeAt(r, gone), "they are gone")
	require.True(t, holds(r, parts[0], 7))
	left := 200 - int(next[parts[0]]+next[parts[5]])
	read(left, all)

	var again []assignedAt
	for tp := range stood {
		again = append(again, assignedAt{tp, next[tp], epochs[tp]})
		all[tp] = 8
	}
	r.assign(8, again)
	r.assign(9, starts(0, parts[0])) // held already: left alone
	require.True(t, holds(r, parts[1], 8))
	require.False(t, holds(r, parts[1], 7), "messages of the assignment before are told apart")
	require.True(t, holds(r, parts[0], 7))
	rest := 0
	for tp := range stood {
		rest += 100 - int(next[tp])
	}
	read(rest, all)
	require.Eventually(t, func() bool { return r.Lag() == 0 }, 10*time.Second, time.Millisecond, "known of all by now")
	require.EqualValues(t, 600, r.Stats().Messages)
	require.Zero(t, fetchesOf.Errors+r.Stats().Errors)
	for _, at := range r.positions() {
		require.EqualValues(t, 100, at.offset)
		require.GreaterOrEqual(t, at.leaderEpoch, int32(0), "that of the last message read")
	}
	for _, s := range r.PartitionStates() {
		require.Equal(t, PartitionState{s.Topic, s.Partition, 100, 100, 0}, s)
	}
}

// What is revoked while it is being read does not come any more, whatever the moment.
func TestReaderRevokeNeverDeliversAfterwards(t *testing.T) {
	b, parts := twoTopics(t, func(c *Config) { c.Consumer.MaxPartitionBytes, c.Consumer.MaxWait = 500, 5*time.Millisecond })
	r := b.assignable()
	buf := make([]Message, 7)
	for round := range int32(100) {
		some := parts[:1+round%6]
		r.assign(round, starts(int64(round%50), some...))
		for range round % 5 {
			n, err := r.FetchBatch(b.ctx, buf)
			require.NoError(t, err)
			for _, m := range buf[:n] {
				require.Equal(t, round, m.assignment, "tagged with the assignment that it was read under")
			}
		}
		r.revoke(some)
		require.Zero(t, r.Stats().QueueLength, "nothing is left queued")
	}
	waiting, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	_, err := r.FetchMessage(waiting)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a reader without partitions waits for some")
	r.assign(200, starts(90, parts[3]))
	m, err := r.FetchMessage(b.ctx)
	require.NoError(t, err)
	require.Equal(t, "other", m.Topic)
	require.EqualValues(t, 90, m.Offset)
}

// Partitions that stay are neither fetched again nor held up by others that come and go.
func TestReaderRevokeLeavesOthersAlone(t *testing.T) {
	b, parts := twoTopics(t, nil)
	r := b.assignable()
	r.assign(1, starts(FirstOffset, parts[0], parts[3]))
	require.Eventually(t, func() bool { return r.Stats().QueueLength == 20 }, 10*time.Second, time.Millisecond, "all of both is there")
	bytes := r.Stats().FetchedBytes
	r.revoke(parts[3:4])
	require.Equal(t, 10, r.Stats().QueueLength, "what was fetched of the one that stays is kept")
	b.expect(r, 0, 100)
	r.assign(2, starts(LastOffset, parts[1:3]...))
	b.writeTo("in", 0, values(100, 101))
	b.expect(r, 100, 101)
	require.Less(t, r.Stats().FetchedBytes-bytes, bytes/2, "nothing was fetched again")
}

// The end of the group's run is what every call returns, to all who wait.
func TestReaderFail(t *testing.T) {
	b, parts := twoTopics(t, nil)
	r := b.assignable()
	fatal := errors.New("fenced")
	done := make(chan error, 3) // the goroutines write, the test reads
	for range cap(done) {
		// Owned by the test; ended by fail; awaited below.
		go func() {
			_, err := r.FetchMessage(b.ctx)
			done <- err
		}()
	}
	r.fail(fatal)
	r.fail(errors.New("a later one"))
	for range cap(done) {
		require.Equal(t, fatal, <-done)
	}
	r.assign(1, starts(0, parts...))
	_, err := r.FetchBatch(b.ctx, make([]Message, 1))
	require.Equal(t, fatal, err)
}

// What a consumer was in the middle of reading when its partition was revoked is not delivered, and
// the position that revoke told stays.
func TestReaderRevokeInTheMiddleOfReading(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, nil)
	b.write(0, values(0, 10))
	r := b.reader(ReaderConfig{})
	require.Eventually(t, func() bool { return r.Stats().QueueLength == 1 }, 10*time.Second, time.Millisecond)
	r.take.Lock()
	defer r.take.Unlock()
	next, some, err := r.current()
	require.NoError(t, err)
	require.True(t, some)
	buf := make([]Message, 4)
	n, after, err := r.read(buf, next, false)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	stood := revokeAt(r, []topicPartition{{"in", 0}})
	require.EqualValues(t, 0, stood[0].offset)
	require.False(t, r.publish(buf, after), "not delivered")
	require.NoError(t, r.damaged(errStuck), "nor is damage in it of interest")
	require.Zero(t, r.Stats().Messages)
}

// holds says whether a partition is read, by the assignment of this number.
func holds(r *Reader, tp topicPartition, assignment int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.byPlace[tp]
	return p != nil && p.assignment == assignment
}

// revokeAt revokes partitions and says where the reading of each that was read stood.
func revokeAt(r *Reader, parts []topicPartition) (stood []positionAt) {
	r.mu.Lock()
	var read []*partition
	for _, tp := range parts {
		if p := r.byPlace[tp]; p != nil {
			read = append(read, p)
		}
	}
	r.mu.Unlock()
	r.revoke(parts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range read {
		stood = append(stood, p.position())
	}
	return stood
}
