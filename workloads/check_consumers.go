package workloads

import (
	"cmp"
	"slices"

	"github.com/kbench/kbench/client/settings"
)

func (c *checker) consumers() {
	r := c.Consumers
	c.count("consumers.count", int64(r.Count), 0, 100_000)
	c.count("consumers.groups", int64(r.Groups), 1, 10_000)
	const most = 1_000_000
	if r.Count*r.Groups > most && r.Count <= 100_000 && r.Groups <= 10_000 {
		c.add("consumers.groups", "is %d, which makes %d consumers with consumers.count=%d; %d is the most", r.Groups, r.Count*r.Groups, r.Count, most)
	}
	if partitions := c.Topics.Count * c.Topics.Partitions; !c.Topics.Existing() && r.Count > partitions && r.Mode == "partition" {
		c.add("consumers.count", "is %d, but there are %d partitions: the others would have nothing to read", r.Count, partitions)
	}
	if c.Producers.Count == 0 && r.Count > 0 && !c.Topics.Existing() {
		c.add("topics.name", "is needed for a run that only consumes: a topic made for it would be empty")
	}
	if r.Count == 0 && !c.mayChange("consumers.count") {
		c.nobody()
		return
	}
	c.startAfter()
	c.idle()
	c.changes()
	if r.Mode != "group" && !c.mayChange("consumers.mode") {
		c.onlyGroups()
	}
}

// nobody refuses what consumers are told to do when there are none.
func (c *checker) nobody() {
	r, d := c.Consumers, Default().Consumers
	for _, key := range []struct {
		name string
		used bool
	}{
		{"groups", r.Groups > d.Groups}, {"mode", r.Mode != d.Mode}, {"startAfter", r.StartAfter != 0},
		{"changes", len(r.Changes) > 0}, {"commit", r.Commit != d.Commit}, {"group", r.Group != ""}, {"idle", r.Idle != 0},
	} {
		if key.used {
			c.add("consumers."+key.name, "says what consumers do, but consumers.count is 0")
		}
	}
}

// onlyGroups refuses what readers of partitions cannot do.
func (c *checker) onlyGroups() {
	if len(c.Consumers.Changes) > 0 {
		c.add("consumers.changes", "needs consumers.mode=group: nobody takes over the partitions of a reader that has its own")
	}
	if c.Consumers.Group != "" {
		c.add("consumers.group", "is %q, which needs consumers.mode=group", c.Consumers.Group)
	}
	if c.Consumers.Commit != Default().Consumers.Commit {
		c.add("consumers.commit", "is %s, which needs consumers.mode=group: readers of partitions commit nothing", c.Consumers.Commit)
	}
}

// idle checks what ends a run of consumers alone, and the name of their group.
func (c *checker) idle() {
	r := c.Consumers
	c.wait("consumers.idle", r.Idle, 0)
	if r.Idle > 0 && c.Producers.Count > 0 {
		c.add("consumers.idle", "is for runs that only consume, and there are %d producers", c.Producers.Count)
	}
	if r.Group != "" && r.Groups > 1 {
		c.add("consumers.groups", "is %d, but consumers.group names one", r.Groups)
	}
	const longest = 255
	if len(r.Group) > longest {
		c.add("consumers.group", "has %d bytes, %d is the most", len(r.Group), longest)
	}
}

func (c *checker) startAfter() {
	r := c.Consumers
	c.wait("consumers.startAfter", r.StartAfter, 0)
	switch length := c.Phases.Length(); {
	case r.StartAfter == 0:
	case c.Producers.Count == 0:
		c.add("consumers.startAfter", "needs producers: without them nothing is written meanwhile")
	case length > 0 && r.StartAfter >= length && !c.mayChange("phases.duration", "consumers.startAfter"):
		c.add("consumers.startAfter", "is %s, but the measured phase ends at %s", settings.FormatDuration(r.StartAfter), settings.FormatDuration(length))
	}
}

// changes goes through the changes in order of time and keeps count.
func (c *checker) changes() {
	r := c.Consumers
	if len(r.Changes) == 0 || c.mayChange("consumers.changes", "consumers.count", "consumers.startAfter", "phases.duration") {
		return
	}
	const most = 1000
	if len(r.Changes) > most {
		c.add("consumers.changes", "has %d entries; %d is the most", len(r.Changes), most)
		return
	}
	there := r.Count
	for _, change := range slices.SortedStableFunc(slices.Values(r.Changes), func(a, b Change) int { return cmp.Compare(a.At, b.At) }) {
		if !c.inTime(change) {
			return
		}
		if change.Kind == Add {
			if there += change.Count; there > 100_000 {
				c.add("consumers.changes", "%s: makes %d consumers in a group; 100000 is the most", change, there)
				return
			}
			continue
		}
		if change.Count > there {
			c.add("consumers.changes", "%s: only %d are there then", change, there)
			return
		}
		there -= change.Count
	}
	if there == 0 {
		c.add("consumers.changes", "leaves nobody in the end to read what is written; let one stay")
	}
}

// inTime refuses a change outside the time that consumers are there.
func (c *checker) inTime(change Change) bool {
	format := settings.FormatDuration
	switch length := c.Phases.Length(); {
	case change.At < c.Consumers.StartAfter:
		c.add("consumers.changes", "%s: the consumers begin at %s", change, format(c.Consumers.StartAfter))
	case change.At < 0:
		c.add("consumers.changes", "%s: is before the measured phase begins", change)
	case length > 0 && change.At >= length:
		c.add("consumers.changes", "%s: the measured phase ends at %s", change, format(length))
	default:
		return true
	}
	return false
}
