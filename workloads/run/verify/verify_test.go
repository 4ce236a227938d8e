package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		sentence string
		acked    []int64 // in one partition, without offsets
		log      []int64
		want     Findings
	}{
		{"everything once and in order", []int64{0, 1, 2}, []int64{0, 1, 2}, Findings{Read: 3, Distinct: 3, Acked: 3}},
		{"what is missing is lost", []int64{0, 1, 2}, []int64{0, 2}, Findings{Read: 2, Distinct: 2, Acked: 3, Lost: 1}},
		{"a batch that is there again is duplicated, not reordered", []int64{0, 1, 2, 3}, []int64{0, 1, 2, 1, 2, 3},
			Findings{Read: 6, Distinct: 4, Acked: 4, Duplicated: 2}},
		{"one that comes after a later one is reordered", []int64{0, 1, 2}, []int64{0, 2, 1}, Findings{Read: 3, Distinct: 3, Acked: 3, Reordered: 1}},
		{"a batch of two behind another", []int64{0, 1, 2, 3, 4}, []int64{0, 3, 4, 1, 2}, Findings{Read: 5, Distinct: 5, Acked: 5, Reordered: 2}},
		{"what was not acknowledged may be there", []int64{0}, []int64{0, 1}, Findings{Read: 2, Distinct: 2, Acked: 1, Unacked: 1}},
		{"an outcome told twice counts once", []int64{0, 0}, []int64{0}, Findings{Read: 1, Distinct: 1, Acked: 1}},
		{"nothing at all", nil, nil, Findings{}},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			before, after := New(), New()
			for _, n := range tc.acked {
				before.Acked(7, n, 3, -1)
			}
			for i, n := range tc.log {
				for _, c := range []*Checker{before, after} {
					c.Log(Record{Producer: 7, Number: n, Partition: 3, Offset: int64(i)})
				}
			}
			for _, n := range tc.acked {
				after.Acked(7, n, 3, -1)
			}
			require.Equal(t, tc.want, before.Findings())
			require.Equal(t, tc.want, after.Findings(), "told afterwards")
			clean := tc.want.Lost+tc.want.Duplicated+tc.want.Reordered == 0
			require.Equal(t, clean, tc.want.Clean())
		})
	}
}

func TestProducersAndPartitionsAreApart(t *testing.T) {
	c := New()
	for n := int64(9); n >= 0; n-- { // rising in each of ten partitions, by each of two producers
		for producer := range uint32(2) {
			c.Acked(producer, n, int32(n), -1)
			c.Log(Record{Producer: producer, Number: n, Partition: int32(n), Offset: int64(producer)})
		}
	}
	require.Equal(t, Findings{Read: 20, Distinct: 20, Acked: 20}, c.Findings())
	c.Log(Record{Producer: 1, Number: 4, Partition: 5, Offset: 2})
	require.EqualValues(t, 1, c.Findings().Duplicated, "in another partition too")
}

func TestAcknowledgedPlaces(t *testing.T) {
	c := New()
	c.Acked(1, 0, 0, 10)
	c.Acked(1, 1, 0, 11)
	c.Acked(1, 2, 0, 12)
	c.Log(Record{Producer: 1, Number: 0, Partition: 0, Offset: 10})
	c.Log(Record{Producer: 1, Number: 2, Partition: 0, Offset: 11})
	f := c.Findings()
	require.EqualValues(t, 1, f.Misplaced, "number 2 is elsewhere; number 1 is lost, which is told already")
	require.EqualValues(t, 1, f.Lost)
	require.False(t, Findings{Misplaced: 1}.Clean())
	c.Altered()
	require.EqualValues(t, 1, c.Findings().Altered)
	require.False(t, Findings{Altered: 1}.Clean())
}

// Numbers come out of messages that anybody may have written.
func TestNumbersOfAnySize(t *testing.T) {
	c := New()
	for i, n := range []int64{math.MaxInt64, math.MinInt64, -1, 1 << 40, 0} {
		c.Log(Record{Number: n, Partition: int32(i)})
		c.Log(Record{Number: n, Partition: int32(i), Offset: 1})
	}
	f := c.Findings()
	require.EqualValues(t, 5, f.Distinct)
	require.EqualValues(t, 5, f.Duplicated)
	require.Len(t, c.read[0], 5, "a word each")
}

// The checker's arithmetic against counting by hand.
func TestCheckerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(0, 3000), 0, 60)
		log, acked := numbers.Draw(t, "log"), numbers.Draw(t, "acked")
		c := New()
		want := Findings{Read: int64(len(log))}
		var seen []int64
		for i, n := range log {
			c.Log(Record{Number: n, Offset: int64(i)})
			switch {
			case slices.Contains(seen, n):
				want.Duplicated++
			case len(seen) > 0 && slices.Max(seen) > n:
				want.Reordered++
				want.Distinct++
			default:
				want.Distinct++
			}
			seen = append(seen, n)
		}
		slices.Sort(acked)
		acked = slices.Compact(acked)
		for _, n := range acked {
			c.Acked(0, n, 0, -1)
			want.Acked++
			if !slices.Contains(log, n) {
				want.Lost++
			}
		}
		slices.Sort(log)
		log = slices.Compact(log)
		for _, n := range log {
			if !slices.Contains(acked, n) {
				want.Unacked++
			}
		}
		require.Equal(t, want, c.Findings())
	})
}

func TestReadGetsEverythingOnceInOrder(t *testing.T) {
	const n = 5000
	k, err := broker.Start(broker.Options{Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	require.NoError(t, k.CreateTopic("t", 5, nil))
	require.NoError(t, k.CreateTopic("empty", 2, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	cfg := client.NewConfig()
	cfg.Producer.Partitioner = "manual"
	c, err := client.NewClient(k.Bootstrap(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p, err := client.NewAsyncProducerFromClient(c)
	require.NoError(t, err)
	check := New()
	send := func(from, n int) {
		for i := from; i < from+n; i++ {
			m := &client.ProducerMessage{Topic: "t", Partition: int32(i % 4), Value: fmt.Append(nil, i)} // the fifth stays empty
			require.NoError(t, p.Produce(ctx, m, nil))
		}
		require.NoError(t, p.Flush(ctx))
	}
	send(0, n)
	require.NoError(t, k.DeleteRecords("t", 0, 10))
	late := false
	err = Read(ctx, c, "t", func(m *client.Message) error {
		if !late { // what is written while reading is not waited for
			late = true
			send(n, 100)
		}
		i, err := strconv.Atoi(string(m.Value))
		check.Log(Record{Number: int64(i), Partition: m.Partition, Offset: m.Offset})
		return err
	})
	require.NoError(t, err)
	f := check.Findings()
	require.EqualValues(t, n-10, f.Read)
	require.True(t, f.Clean(), "%+v", f)

	require.NoError(t, Read(ctx, c, "empty", func(*client.Message) error { return errors.New("a message") }))
	stop := errors.New("enough")
	require.ErrorIs(t, Read(ctx, c, "t", func(*client.Message) error { return stop }), stop)
	require.Error(t, Read(ctx, c, "missing", nil))
	require.NoError(t, p.Close(ctx))
}
