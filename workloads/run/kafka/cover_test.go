package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
)

func partitions(ids ...int32) (out []client.TopicPartition) {
	for _, id := range ids {
		out = append(out, client.TopicPartition{Topic: "t", Partition: id})
	}
	return out
}

// A group of two with four partitions, whole at 100, measured from 1000 on.
func settled() (c *coverage, a, b *seat) {
	c, a, b = newCoverage("g", 4), &seat{}, &seat{}
	c.assigned(a, 50, partitions(0, 1, 2, 3))
	c.revoked(a, 60, partitions(2, 3))
	c.assigned(b, 100, partitions(2, 3))
	c.assigned(a, 101, nil)
	c.begin(1000)
	return c, a, b
}

func TestCoverage(t *testing.T) {
	for _, row := range []struct {
		says    string
		happens func(c *coverage, a, b *seat)
		want    []results.Event
	}{
		{"the beginning of a group is no rebalance", func(*coverage, *seat, *seat) {}, nil},
		{"a partition goes from one to the other", func(c *coverage, a, b *seat) {
			c.revoked(a, 1200, partitions(1))
			c.assigned(a, 1210, nil)
			c.assigned(b, 1250, partitions(1))
		}, []results.Event{{AtNs: 1200, DurationNs: 50, Kind: "rebalance", Text: "g: a partition had no reader"}}},
		{"everything stops and comes back", func(c *coverage, a, b *seat) {
			c.revoked(a, 1200, partitions(0, 1))
			c.revoked(b, 1210, partitions(2, 3))
			c.assigned(b, 1300, partitions(0, 1))
			c.assigned(a, 1330, partitions(2, 3))
		}, []results.Event{{AtNs: 1200, DurationNs: 130, Kind: "rebalance", Text: "g: 4 partitions had no reader"}}},
		{"one is killed, and the other takes over when its session has run out", func(c *coverage, a, b *seat) {
			c.gone(a, 2000)
			c.revoked(a, 2500, partitions(0, 1)) // too late to mean anything
			c.assigned(b, 9000, partitions(0, 1))
		}, []results.Event{{AtNs: 2000, DurationNs: 7000, Kind: "rebalance", Text: "g: 2 partitions had no reader"}}},
		{"a member that comes and gets nothing", func(c *coverage, _, _ *seat) { c.assigned(&seat{}, 1500, nil) }, nil},
		{"two rebalances", func(c *coverage, a, b *seat) {
			c.revoked(a, 1100, partitions(1))
			c.assigned(b, 1110, partitions(1))
			c.revoked(b, 1200, partitions(1))
			c.assigned(a, 1230, partitions(1))
		}, []results.Event{{AtNs: 1100, DurationNs: 10, Kind: "rebalance", Text: "g: a partition had no reader"},
			{AtNs: 1200, DurationNs: 30, Kind: "rebalance", Text: "g: a partition had no reader"}}},
		{"the end of the run is no rebalance", func(c *coverage, a, b *seat) {
			c.end(5000)
			c.revoked(a, 5001, partitions(0, 1))
			c.revoked(b, 5002, partitions(2, 3))
		}, nil},
		{"one that the end comes upon", func(c *coverage, a, b *seat) {
			c.gone(a, 4000)
			c.end(5000)
			c.assigned(b, 9000, partitions(0, 1))
		}, []results.Event{{AtNs: 4000, DurationNs: 1000, Kind: "rebalance", Text: "g: 2 partitions had no reader, still at the end of the measured phase"}}},
		{"a partition that was taken over from one that stood still", func(c *coverage, a, b *seat) {
			c.assigned(b, 1500, partitions(0, 1))
			c.revoked(a, 1600, partitions(0, 1)) // it wakes up and hears of it
		}, nil},
	} {
		c, a, b := settled()
		row.happens(c, a, b)
		require.Equal(t, row.want, c.events, row.says)
		require.EqualValues(t, len(row.want), c.count, row.says)
		var longest int64
		for _, e := range row.want {
			longest = max(longest, e.DurationNs)
		}
		require.Equal(t, longest, c.longest, row.says)
	}
}

// What happened before the measured phase is in no figure, also when it ends in it.
func TestCoverageBeforeTheMeasuredPhase(t *testing.T) {
	c, a, b := newCoverage("g", 2), &seat{}, &seat{}
	c.assigned(a, 10, partitions(0, 1))
	c.revoked(a, 500, partitions(1))
	c.begin(1000)
	c.assigned(b, 1500, partitions(1))
	require.Zero(t, c.count)
	c.revoked(b, 1600, partitions(1))
	c.assigned(a, 1650, partitions(1))
	require.EqualValues(t, 1, c.count)
}

// A member's own wait is from what it gave up to what it got next, once.
func TestCoverageWaits(t *testing.T) {
	c, a, b := settled()
	_, waited := c.assigned(a, 1100, nil)
	require.False(t, waited)
	c.revoked(a, 1200, partitions(0))
	c.revoked(a, 1220, partitions(1))
	from, waited := c.assigned(a, 1300, partitions(1))
	require.True(t, waited)
	require.EqualValues(t, 1200, from, "since the first of what it gave up")
	_, waited = c.assigned(a, 1400, partitions(0))
	require.False(t, waited)
	c.revoked(b, 1500, partitions(2))
	c.gone(b, 1510)
	_, waited = c.assigned(b, 1520, partitions(2))
	require.False(t, waited, "the dead wait for nothing")
	require.Nil(t, c.owner[partitions(2)[0]])
}

func TestCoverageSettles(t *testing.T) {
	c, a, b := newCoverage("g", 4), &seat{}, &seat{}
	seats := []*seat{a, b}
	require.False(t, c.ready(seats))
	c.assigned(a, 1, partitions(0, 1, 2, 3))
	require.False(t, c.ready(seats), "the other has not been told of anything")
	c.assigned(b, 2, nil)
	require.True(t, c.ready(seats))
	require.False(t, c.fair(seats), "it could have some")
	require.Equal(t, `4 of 4 partitions of group "g" have a reader`, c.say())
	c.revoked(a, 3, partitions(2, 3))
	require.False(t, c.ready(seats))
	c.assigned(b, 4, partitions(2, 3))
	require.True(t, c.ready(seats) && c.fair(seats))
	require.True(t, c.fair([]*seat{{held: 1}, {held: 1}, {held: 1}, {held: 1}, {}}), "more members than partitions")
}
