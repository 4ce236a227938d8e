package kafka

import (
	"fmt"
	"math"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
)

// coverage follows which member of a group reads which partition. It is pure: what happened and
// when is what it is given.
//
// A rebalance here is a time during which some partition has no reader: from when one lost its
// reader (it was given up, or the reader was killed) until every partition has one again. Members
// that come and go without a partition being moved cause none.
type coverage struct {
	name    string
	total   int
	from    int64 // when the measured phase began; far away before
	owner   map[client.TopicPartition]*seat
	whole   bool  // every partition had a reader once: what was before is the group's beginning
	brokeAt int64 // since when some partition has no reader; counted only while broken
	broken  bool
	moved   map[client.TopicPartition]bool // that lost their reader since

	events  []results.Event // with instants on the engine's clock
	count   int64
	longest int64
}

// seat is one member's place.
type seat struct {
	held    int
	joined  bool // it was assigned something, or told that there is nothing for it
	dead    bool // what is heard of it from now on is late
	revoked int64
	waits   bool // it gave up partitions and was not assigned anew since
}

func newCoverage(name string, total int) *coverage {
	return &coverage{name: name, total: total, from: math.MaxInt64, owner: map[client.TopicPartition]*seat{}, moved: map[client.TopicPartition]bool{}}
}

// assigned takes in what a member got in addition. waited is since when it had been waiting for
// that after giving something up; false when it had not.
func (c *coverage) assigned(s *seat, at int64, parts []client.TopicPartition) (waited int64, did bool) {
	if s.dead {
		return 0, false
	}
	s.joined = true
	for _, p := range parts {
		if before := c.owner[p]; before != nil {
			before.held--
		}
		c.owner[p] = s
		s.held++
	}
	waited, did = s.revoked, s.waits
	s.waits = false
	c.settle(at)
	return waited, did
}

// revoked takes in what a member gave up.
func (c *coverage) revoked(s *seat, at int64, parts []client.TopicPartition) {
	if s.dead {
		return
	}
	if !s.waits {
		s.revoked, s.waits = at, true
	}
	for _, p := range parts {
		c.drop(s, at, p)
	}
}

// gone takes in that a member was killed.
func (c *coverage) gone(s *seat, at int64) {
	for p, owner := range c.owner {
		if owner == s {
			c.drop(s, at, p)
		}
	}
	s.dead = true
}

func (c *coverage) drop(s *seat, at int64, p client.TopicPartition) {
	if c.owner[p] != s {
		return
	}
	delete(c.owner, p)
	s.held--
	if c.whole {
		c.moved[p] = true
		if !c.broken {
			c.broken, c.brokeAt = true, at
		}
	}
}

// settle ends a rebalance when every partition has a reader.
func (c *coverage) settle(at int64) {
	if len(c.owner) < c.total {
		return
	}
	c.whole = true
	if c.broken {
		c.note(at-c.brokeAt, "")
		c.broken = false
	}
}

// note counts a rebalance of the measured phase.
func (c *coverage) note(took int64, more string) {
	text := fmt.Sprintf("%s: %d partitions had no reader%s", c.name, len(c.moved), more)
	if len(c.moved) == 1 {
		text = fmt.Sprintf("%s: a partition had no reader%s", c.name, more)
	}
	clear(c.moved)
	if c.brokeAt < c.from {
		return
	}
	c.count++
	c.longest = max(c.longest, took)
	const most = 1000
	if len(c.events) < most {
		c.events = append(c.events, results.Event{AtNs: c.brokeAt, DurationNs: took, Kind: "rebalance", Text: text})
	}
}

// begin takes in that the measured phase begins.
func (c *coverage) begin(at int64) { c.from = at }

// end takes in that the measured phase has ended; what happens later is not looked at, but for
// the end of a rebalance that is under way.
func (c *coverage) end(at int64) {
	if c.broken && c.brokeAt <= at {
		c.note(at-c.brokeAt, ", still at the end of the measured phase")
	}
	c.broken, c.whole = false, false
}

// ready says whether every partition has a reader and every seat given was told of its share.
func (c *coverage) ready(seats []*seat) bool {
	for _, s := range seats {
		if !s.joined {
			return false
		}
	}
	return len(c.owner) == c.total
}

// fair says whether nobody goes without a partition who could have one.
func (c *coverage) fair(seats []*seat) bool {
	for _, s := range seats {
		if s.held == 0 && len(seats) <= c.total {
			return false
		}
	}
	return true
}

// say is how far the group has come, for an error.
func (c *coverage) say() string {
	return fmt.Sprintf("%d of %d partitions of group %q have a reader", len(c.owner), c.total, c.name)
}

// steady is how long a group must stand still to be taken for settled, when some of its members
// have nothing though they could.
func steady(heartbeat time.Duration) time.Duration { return heartbeat + time.Second }
