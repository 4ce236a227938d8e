package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kbench/kbench/client/internal/assign"
)

// GroupConfig are the settings of members of consumer groups.
type GroupConfig struct {
	Protocol          string        `key:"protocol" enum:"classic,consumer,auto" doc:"How members agree. classic: one of the members assigns the partitions. consumer: the coordinator does (KIP-848, Kafka 4); the times of sessions and heartbeats are then the broker's settings. auto: consumer where the coordinator offers it and the group's members do not use classic."`
	RemoteAssignor    string        `key:"remoteAssignor" doc:"With protocol consumer: the coordinator's assignor, uniform or range, or what else the broker setting group.consumer.assignors names; empty: the broker's first."`
	Balancers         Balancers     `key:"balancers" doc:"Assignors offered, separated by commas, the preferred one first: range, roundrobin, sticky, cooperative-sticky. The group takes one that all its members offer. A member keeps reading through a rebalance only if all that it offers are cooperative."`
	SessionTimeout    time.Duration `key:"sessionTimeout" doc:"A member whose heartbeats stop for this long is taken for dead, and its partitions go to others."`
	RebalanceTimeout  time.Duration `key:"rebalanceTimeout" doc:"How long the members may take to give partitions up and join again when the group rebalances."`
	HeartbeatInterval time.Duration `key:"heartbeatInterval" doc:"How often a member says that it lives; also how soon it notices a rebalance."`
	CommitInterval    time.Duration `key:"commitInterval" doc:"How often marked offsets are committed, merged into one request. 0: CommitMessages commits, and waits for the answer."`
	TopicInterval     time.Duration `key:"topicInterval" doc:"How often a group looks for topics that match its pattern, and for new partitions."`
	MaxPollInterval   time.Duration `key:"maxPollInterval" doc:"A member whose application has not asked for messages for this long leaves the group, so that others read on, and joins again when it asks. It may be a tenth longer until that is noticed. 0: never."`
}

// Balancers are names of assignors.
type Balancers []string

// MarshalText joins the names by commas.
func (b Balancers) MarshalText() ([]byte, error) { return []byte(strings.Join(b, ",")), nil }

// UnmarshalText takes names separated by commas.
func (b *Balancers) UnmarshalText(text []byte) error {
	var out Balancers
	for name := range strings.SplitSeq(string(text), ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	if _, err := out.assignors(); err != nil {
		return err
	}
	*b = out
	return nil
}

func (b Balancers) assignors() (out []assign.Balancer, err error) {
	for i, name := range b {
		a, known := assign.ByName(name)
		if !known {
			return nil, fmt.Errorf("%q is not one of %s", name, strings.Join(assign.Names(), ", "))
		}
		if slices.Contains(b[:i], name) {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("none is given; there are %s", strings.Join(assign.Names(), ", "))
	}
	return out, nil
}

func defaultGroupConfig() GroupConfig {
	return GroupConfig{
		Protocol: protocolClassic, Balancers: Balancers{assign.CooperativeSticky}, SessionTimeout: 45 * time.Second,
		RebalanceTimeout: time.Minute, HeartbeatInterval: 3 * time.Second, TopicInterval: 10 * time.Second,
		MaxPollInterval: 5 * time.Minute,
	}
}

// longestGroupTime is what fits the protocol's milliseconds.
const longestGroupTime = (1<<31 - 1) * time.Millisecond

func (g GroupConfig) validate(p *problems, section string) {
	if !slices.Contains([]string{protocolClassic, protocolConsumer, protocolAuto}, g.Protocol) {
		p.add(section+"protocol", "%q is not one of classic, consumer and auto", g.Protocol)
	}
	p.atMost(section+"remoteAssignor", len(g.RemoteAssignor), 1<<15-1)
	if _, err := g.Balancers.assignors(); err != nil {
		p.add(section+"balancers", "%v", err)
	}
	for _, t := range []struct {
		key   string
		value time.Duration
	}{
		{"sessionTimeout", g.SessionTimeout},
		{"rebalanceTimeout", g.RebalanceTimeout},
		{"heartbeatInterval", g.HeartbeatInterval},
		{"topicInterval", g.TopicInterval},
	} {
		if t.value < time.Millisecond || t.value > longestGroupTime {
			p.add(section+t.key, "is %v, must be from 1ms to %v", t.value, longestGroupTime)
		}
	}
	if g.HeartbeatInterval >= g.SessionTimeout && g.SessionTimeout > 0 {
		p.add(section+"heartbeatInterval", "is %v, must be below the session timeout (%v), best a third of it or less", g.HeartbeatInterval, g.SessionTimeout)
	}
	p.notNegative(section+"commitInterval", g.CommitInterval)
	if g.MaxPollInterval != 0 && g.MaxPollInterval < time.Millisecond {
		p.add(section+"maxPollInterval", "is %v, must be 0 (never) or at least 1ms", g.MaxPollInterval)
	}
}

// group is the group's part of a reader's configuration: what ReaderConfig says, and what it
// leaves out as Config has it.
func (c *ReaderConfig) group(defaults GroupConfig) GroupConfig {
	g := defaults
	if len(c.GroupBalancers) > 0 {
		g.Balancers = c.GroupBalancers
	}
	if c.GroupProtocol != "" {
		g.Protocol = c.GroupProtocol
	}
	for _, t := range []struct {
		own time.Duration
		to  *time.Duration
	}{
		{c.SessionTimeout, &g.SessionTimeout}, {c.RebalanceTimeout, &g.RebalanceTimeout},
		{c.HeartbeatInterval, &g.HeartbeatInterval}, {c.CommitInterval, &g.CommitInterval},
	} {
		if t.own != 0 {
			*t.to = t.own
		}
	}
	if c.CommitInterval < 0 {
		g.CommitInterval = 0
	}
	return g
}

// validateGroup looks at what a group's member is given; the times are looked at once Config's are
// known (see validateTimes).
func (c *ReaderConfig) validateGroup(p *problems) {
	if len(c.groupTopics()) == 0 && c.TopicPattern == "" {
		p.add("topics", "are missing: give topics, or a pattern of their names")
	}
	if slices.Contains(c.groupTopics(), "") {
		p.add("topics", "one of them is empty")
	}
	if _, err := compilePattern(c.TopicPattern); err != nil {
		p.add("topicPattern", "%v", err)
	}
	if len(c.Partitions) > 0 || c.Partition != 0 {
		p.add("partitions", "are assigned by the group: leave them out, or groupID")
	}
	if len(c.GroupBalancers) > 0 {
		if _, err := Balancers(c.GroupBalancers).assignors(); err != nil {
			p.add("groupBalancers", "%v", err)
		}
	}
	const longest = 1<<15 - 1 // bytes of a string in the protocol
	p.atMost("groupID", len(c.GroupID), longest)
	p.atMost("groupInstanceID", len(c.GroupInstanceID), longest)
}

// validateTimes looks at the group's settings that are in effect.
func (c *ReaderConfig) validateTimes(defaults GroupConfig) error {
	var p problems
	c.group(defaults).validate(&p, "")
	if len(p) > 0 {
		return &ConfigError{Problems: p}
	}
	return nil
}
