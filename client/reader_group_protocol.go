package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/group"
	"github.com/kbench/kbench/client/internal/wire"
)

// The values of GroupConfig.Protocol.
const (
	protocolClassic  = "classic"
	protocolConsumer = "consumer"
	protocolAuto     = "auto"
)

func (m *membership) newClassic() group.Member {
	balancers, _ := m.set.Balancers.assignors() // validated before
	return group.NewClassic(group.Settings{
		Group: m.r.cfg.GroupID, InstanceID: m.r.cfg.GroupInstanceID, Rack: m.r.consume.Rack,
		Session: m.set.SessionTimeout, Rebalance: m.set.RebalanceTimeout, Heartbeat: m.set.HeartbeatInterval, Watch: m.set.TopicInterval,
		Balancers: balancers, Backoff: m.r.client.adminWait,
	})
}

func (m *membership) newConsumer() group.Member {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return group.NewConsumer(group.ConsumerSettings{
		Group: m.r.cfg.GroupID, InstanceID: m.r.cfg.GroupInstanceID, Rack: m.r.consume.Rack,
		MemberID: hex.EncodeToString(id[:]), Assignor: m.set.RemoteAssignor, Pattern: m.remotePattern(),
		Rebalance: m.set.RebalanceTimeout, Patience: m.set.SessionTimeout + leaveWithin, Backoff: m.r.client.adminWait,
	})
}

// remotePattern is the pattern that the coordinator can match topics with: it takes RE2, of which
// Go's expressions are a dialect, and whole names, as we do; but it knows no topics that are never
// meant, so that a pattern which matches one of those is matched here.
func (m *membership) remotePattern() string {
	pattern, err := compilePattern(m.r.cfg.TopicPattern) // validated before
	if m.r.cfg.TopicPattern == "" || err != nil || slices.ContainsFunc(internalTopics, pattern.MatchString) {
		return ""
	}
	return m.r.cfg.TopicPattern
}

// choose finds out, for protocol auto, whether the coordinator does the consumer protocol. False:
// the membership has ended.
func (m *membership) choose() bool {
	for failures := 1; ; failures++ {
		offered, err := m.offersConsumer(m.life)
		switch {
		case m.life.Err() != nil:
			return false
		case err == nil:
			if offered {
				m.tell(func(time.Time) { m.take(protocolConsumer) })
			}
			return true
		case !wire.Classify(m.judge(kmsg.FindCoordinator, err)).Has(wire.Retriable):
			m.fatal(fmt.Errorf("group %q: %w", m.r.cfg.GroupID, err))
			return false
		}
		m.r.client.forgetCoordinator(m.key)
		if m.again(m.life, failures) != nil {
			return false
		}
	}
}

// offersConsumer asks the coordinator: it must speak the requests, and the cluster have the feature.
func (m *membership) offersConsumer(ctx context.Context) (bool, error) {
	b, err := m.r.client.coordinator(ctx, m.key)
	if err != nil {
		return false, err
	}
	c, err := m.talks.to(ctx, b)
	if err != nil {
		return false, err
	}
	_, err = c.Version(kmsg.NewPtrConsumerGroupHeartbeatRequest().Key())
	return err == nil && c.Feature("group.version") >= 1, nil
}

// take makes the member one of a protocol; before it has begun. Called by the loop.
func (m *membership) take(protocol string) {
	if m.leaving {
		return
	}
	m.protocol.Store(protocol)
	if protocol == protocolConsumer {
		m.member = m.newConsumer()
		return
	}
	m.member = m.newClassic()
}

// usesConsumer says that the member is one of the consumer protocol.
func (m *membership) usesConsumer() bool { return m.protocol.Load() == protocolConsumer }

// begin gives the member the topics found. Of a pattern that the coordinator has as well it gets
// them all the same: a coordinator looks for new ones only every ten minutes
// (group.consumer.regex.refresh.interval.ms), we every TopicInterval.
func (m *membership) begin(now time.Time, names []string) {
	m.names = names
	m.member.Subscribe(now, names)
}

// poll asks the member what is to be done. With protocol auto, a group whose members use the classic
// protocol, and which cannot change to the other, is joined as they do.
func (m *membership) poll(now time.Time) group.Orders {
	o := m.member.Poll(now)
	if m.set.Protocol == protocolAuto && m.usesConsumer() && !m.leaving && errors.Is(o.Err, wire.ErrGroupIDNotFound) {
		m.r.log.Info("the group uses the classic protocol", "group", m.r.cfg.GroupID)
		m.take(protocolClassic)
		m.begin(now, m.names)
		o = m.member.Poll(now)
	}
	return o
}

// nameTopics finds the topics with these ids. One that is not there is left out.
func (m *membership) nameTopics(ctx context.Context, ids [][16]byte) (map[string]group.Topic, error) {
	out := make(map[string]group.Topic, len(ids))
	wanted := make(map[[16]byte]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for name, t := range m.r.client.meta.Load().topics {
		if wanted[t.id] && t.err == nil {
			out[name] = group.Topic{ID: t.id, Partitions: int32(len(t.partitions))}
			delete(wanted, t.id)
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, id := range ids {
		if wanted[id] {
			t := kmsg.NewMetadataRequestTopic()
			t.TopicID = id
			req.Topics = append(req.Topics, t)
		}
	}
	b, err := m.r.client.anyBroker()
	if err != nil {
		return out, err
	}
	answer, err := b.Request(ctx, req)
	if err != nil {
		return out, err
	}
	resp, ok := answer.(*kmsg.MetadataResponse)
	if !ok {
		return out, fmt.Errorf("broker %s answered Metadata with %T", b.addr, answer)
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.ErrorCode == 0 && t.Topic != nil && wanted[t.TopicID] {
			out[*t.Topic] = group.Topic{ID: t.TopicID, Partitions: int32(len(t.Partitions))}
		}
	}
	return out, nil
}
