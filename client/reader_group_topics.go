package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// internalTopics are never meant by a pattern.
var internalTopics = []string{"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}

// compilePattern makes a pattern match whole names.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + pattern + ")$")
}

// groupTopics are the topics that a member names itself.
func (c *ReaderConfig) groupTopics() []string {
	names := slices.Clone(c.Topics)
	if c.Topic != "" {
		names = append(names, c.Topic)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// subscribe finds the topics to read, and, with a pattern, looks for more every now and then.
func (m *membership) subscribe() {
	if m.set.Protocol == protocolAuto && !m.choose() {
		return
	}
	first := true
	for failures := 0; ; {
		sizes, err := m.findTopics(m.life, first)
		switch {
		case m.life.Err() != nil:
			return
		case err == nil:
			failures = 0
			m.foundTopics(sizes, first)
			first = false
		case !first || wire.Classify(m.judge(kmsg.Metadata, err)).Has(wire.Retriable):
			failures++
			m.r.errLog.Warn("looking for the group's topics failed", "group", m.r.cfg.GroupID, "error", err)
		default:
			m.fatal(fmt.Errorf("group %q: %w", m.r.cfg.GroupID, err))
			return
		}
		wait := m.set.TopicInterval
		if failures > 0 {
			wait = min(wait, m.r.client.adminWait(failures))
		} else if m.r.cfg.TopicPattern == "" {
			return
		}
		if m.r.client.sleep(m.life, wait) != nil {
			return
		}
	}
}

// findTopics says how many partitions each topic to be read has. A topic that was named and does
// not exist is an error the first time; one that is deleted later has none.
func (m *membership) findTopics(ctx context.Context, first bool) (map[string]int32, error) {
	c, cfg := m.r.client, &m.r.cfg
	names := cfg.groupTopics()
	if cfg.TopicPattern == "" || first {
		for _, name := range names {
			if _, err := c.topic(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	if cfg.TopicPattern != "" {
		if err := c.refreshAll(ctx); err != nil {
			return nil, err
		}
		pattern, err := compilePattern(cfg.TopicPattern)
		if err != nil {
			return nil, err // validated before
		}
		for name, t := range c.meta.Load().topics {
			if t.err == nil && pattern.MatchString(name) && !slices.Contains(internalTopics, name) {
				names = append(names, name)
			}
		}
	}
	sizes := make(map[string]int32, len(names))
	known := c.meta.Load().topics
	for _, name := range names {
		sizes[name] = 0
		if t := known[name]; t != nil {
			sizes[name] = int32(len(t.partitions))
		}
	}
	return sizes, nil
}

// foundTopics remembers how many partitions topics had when this member first saw them: what is
// added later is read from its beginning, wherever the group starts otherwise (C7). A topic that
// appears later has none of old.
func (m *membership) foundTopics(sizes map[string]int32, first bool) {
	m.mu.Lock()
	if m.sizes == nil {
		m.sizes = map[string]int32{}
	}
	for name, n := range sizes {
		if _, seen := m.sizes[name]; !seen && first {
			m.sizes[name] = n
		}
	}
	m.mu.Unlock()
	names := slices.Sorted(maps.Keys(sizes))
	m.tell(func(now time.Time) {
		if !m.leaving {
			m.begin(now, names)
		}
	})
}

// startOf is where a partition starts of which the group has committed nothing.
func (m *membership) startOf(p group.Partition) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch start := m.r.cfg.StartOffset; {
	case p.ID >= m.sizes[p.Topic], start == 0:
		return FirstOffset
	default:
		return start
	}
}

// describe finds out what the leader needs to know of topics.
func (m *membership) describe(d group.Describe) {
	topics := make(map[string]group.Topic, len(d.Topics))
	var err error
	if len(d.Topics) > 0 {
		err = m.judge(kmsg.Metadata, m.r.client.RefreshMetadata(m.life, d.Topics...))
	}
	if err == nil && len(d.IDs) > 0 {
		topics, err = m.nameTopics(m.life, d.IDs)
	}
	if err == nil {
		known := m.r.client.meta.Load().topics
		for _, name := range d.Topics {
			if t := known[name]; t != nil && !errors.Is(t.err, wire.ErrUnknownTopicOrPartition) {
				topics[name] = group.Topic{ID: t.id, Partitions: int32(len(t.partitions))}
			}
		}
	}
	m.tell(func(now time.Time) { m.member.Described(now, d.Serial, topics, err) })
}
