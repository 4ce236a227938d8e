package group

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/assign"
	"github.com/kbench/kbench/client/internal/wire"
)

// beats drives one Consumer by hand and shows what it says and wants as short lines.
type beats struct {
	t    *testing.T
	m    *Consumer
	now  time.Time
	sent int // serial of the last heartbeat
	asks int // serial of the last Describe
	todo int // serial of the last Reconcile
	last Orders
}

// topicID is the id of a topic with a name like "t1", and back.
func topicID(name string) (id [16]byte) { copy(id[1:], name); return id }

func newBeats(t *testing.T, change func(*ConsumerSettings)) *beats {
	set := ConsumerSettings{Group: "g", MemberID: "me", Rebalance: 30 * time.Second, Patience: 50 * time.Second,
		Backoff: func(failures int) time.Duration { return time.Duration(failures) * 100 * time.Millisecond }}
	if change != nil {
		change(&set)
	}
	return &beats{t: t, m: NewConsumer(set), now: time.Unix(1000, 0)}
}

// poll is what the member wants, in words.
func (s *beats) poll() string {
	s.last = s.m.Poll(s.now)
	var out []string
	for _, send := range s.last.Send {
		s.sent = send.Serial
		out = append(out, beatText(send.Request.(*kmsg.ConsumerGroupHeartbeatRequest)))
	}
	if d := s.last.Describe; d != nil {
		s.asks = d.Serial
		out = append(out, fmt.Sprintf("describe %d", len(d.IDs)))
	}
	if r := s.last.Reconcile; r != nil {
		s.todo = r.Serial
		text := fmt.Sprintf("hold[%s]@%d", partsText(r.Hold), r.Generation)
		if r.Lost {
			text = "lost " + text
		}
		out = append(out, text)
	}
	if s.last.Err != nil {
		out = append(out, "error: "+s.last.Err.Error())
	}
	if s.last.Left {
		out = append(out, "left")
	}
	return strings.Join(out, " | ")
}

func beatText(r *kmsg.ConsumerGroupHeartbeatRequest) string {
	out := []string{fmt.Sprintf("beat %s@%d", r.MemberID, r.MemberEpoch)}
	for _, o := range []struct {
		name string
		v    *string
	}{{"instance", r.InstanceID}, {"rack", r.RackID}, {"regex", r.SubscribedTopicRegex}, {"assignor", r.ServerAssignor}} {
		if o.v != nil {
			out = append(out, o.name+"="+*o.v)
		}
	}
	if r.RebalanceTimeoutMillis >= 0 {
		out = append(out, "timeout="+strconv.Itoa(int(r.RebalanceTimeoutMillis)))
	}
	if r.SubscribedTopicNames != nil {
		out = append(out, "topics="+strings.Join(r.SubscribedTopicNames, ","))
	}
	if r.Topics != nil {
		var owned []assign.TopicPartitions
		for _, t := range r.Topics {
			owned = append(owned, assign.TopicPartitions{Topic: strings.Trim(string(t.TopicID[:]), "\x00"), Partitions: t.Partitions})
		}
		out = append(out, "owns["+partsText(owned)+"]")
	}
	return strings.Join(out, " ")
}

func partsText(parts []assign.TopicPartitions) string {
	var out []string
	for _, t := range parts {
		out = append(out, t.Topic+":"+strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Partitions), " ", ","), "[]"))
	}
	return strings.Join(out, " ")
}

// readParts reads what partsText writes.
func readParts(s string) (out []assign.TopicPartitions) {
	for _, word := range strings.Fields(s) {
		topic, numbers, _ := strings.Cut(word, ":")
		t := assign.TopicPartitions{Topic: topic}
		for _, n := range strings.Split(numbers, ",") {
			p, err := strconv.Atoi(n)
			if err != nil {
				panic(err)
			}
			t.Partitions = append(t.Partitions, int32(p))
		}
		out = append(out, t)
	}
	return out
}

func (s *beats) want(want string) {
	s.t.Helper()
	require.Equal(s.t, want, s.poll())
}

// answer says yes with an epoch; assignment "-" says nothing of one.
func (s *beats) answer(epoch int32, assignment string) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.MemberEpoch, resp.HeartbeatIntervalMillis = epoch, 5000
	if assignment != "-" {
		a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
		for _, t := range readParts(assignment) {
			topic := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			topic.TopicID, topic.Partitions = topicID(t.Topic), t.Partitions
			a.Topics = append(a.Topics, topic)
		}
		resp.Assignment = &a
	}
	s.m.Answered(s.now, s.sent, resp, nil)
}

func (s *beats) refuse(code *wire.KafkaError) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.ErrorCode = code.Code
	s.m.Answered(s.now, s.sent, resp, nil)
}

func (s *beats) name(names ...string) {
	topics := map[string]Topic{}
	for _, n := range names {
		topics[n] = Topic{ID: topicID(n), Partitions: 10}
	}
	s.m.Described(s.now, s.asks, topics, nil)
}

func (s *beats) held(parts string) { s.m.Held(s.now, s.todo, readParts(parts)) }
func (s *beats) wait(d time.Duration) {
	s.now = s.now.Add(d)
}

// joined is a member at epoch 1 that holds t1:0,1 and has said so.
func member(t *testing.T, change func(*ConsumerSettings)) *beats {
	s := newBeats(t, change)
	s.m.Subscribe(s.now, []string{"t1"})
	s.poll()
	s.answer(1, "t1:0,1")
	require.Equal(t, "describe 1", s.poll())
	s.name("t1")
	require.Equal(t, "hold[t1:0,1]@1", s.poll())
	s.held("t1:0,1")
	require.Contains(t, s.poll(), "owns[t1:0,1]")
	s.answer(1, "-")
	require.Empty(t, s.poll())
	return s
}

func TestConsumerJoinsAndBeats(t *testing.T) {
	s := newBeats(t, func(set *ConsumerSettings) { set.Rack, set.Assignor = "r1", "uniform" })
	s.want("")
	require.False(t, s.m.Status().Commits)
	s.m.Subscribe(s.now, []string{"t2", "t1", "t2"})
	s.want("beat me@0 rack=r1 assignor=uniform timeout=30000 topics=t1,t2 owns[]")
	s.want("")
	s.answer(3, "t1:0,1 t2:4")
	require.False(t, s.m.Status().Settled)
	s.want("describe 2")
	s.name("t1")
	s.want("hold[t1:0,1]@3") // what has a name is begun with
	require.Equal(t, s.now.Add(100*time.Millisecond), s.last.Wake, "the other is asked for again")
	s.wait(100 * time.Millisecond)
	s.want("describe 1")
	s.name("t2")
	s.want("hold[t1:0,1 t2:4]@3") // replaces the one under way
	s.held("t1:0,1 t2:4")
	s.want("beat me@3 owns[t1:0,1 t2:4]") // at once
	require.False(t, s.m.Status().Settled)
	s.answer(3, "-")
	s.want("")
	require.Equal(t, Status{Identity: Identity{MemberID: "me", Generation: 3}, Commits: true, Settled: true}, s.m.Status())
	require.Equal(t, s.now.Add(5*time.Second), s.last.Wake, "the interval is the coordinator's")
	s.wait(5 * time.Second)
	s.want("beat me@3") // nothing else: nothing has changed
	s.answer(4, "-")
	require.EqualValues(t, 4, s.m.Status().Generation)
}

func TestConsumerGivesUpBeforeItSaysSo(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(1, "t1:0")
	s.want("hold[t1:0]@1")
	require.False(t, s.m.Status().Settled)
	require.True(t, s.m.Status().Commits, "what is given up is committed first")
	s.wait(5 * time.Second)
	s.want("beat me@1") // it goes on while something is being given up, and says nothing of it
	s.answer(1, "-")
	s.held("t1:0")
	s.want("beat me@1 owns[t1:0]")
	s.answer(2, "t1:0,7")
	s.want("hold[t1:0,7]@2")
	s.held("t1:0,7")
	s.want("beat me@2 owns[t1:0,7]")
	s.answer(2, "-")
	require.True(t, s.m.Status().Settled)
}

func TestConsumerReplacesAnOrderUnderWay(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(2, "t1:0,1,2")
	s.want("hold[t1:0,1,2]@2")
	late := s.todo
	s.wait(5 * time.Second)
	s.want("beat me@2")
	s.answer(2, "t1:1")
	s.want("hold[t1:1]@2")
	s.m.Held(s.now, late, readParts("t1:0,1,2"))
	s.want("") // nobody waits for that one any more
	s.held("t1:1")
	s.want("beat me@2 owns[t1:1]")
}

func TestConsumerIsFenced(t *testing.T) {
	for _, code := range []*wire.KafkaError{wire.ErrFencedMemberEpoch, wire.ErrUnknownMemberID} {
		s := member(t, nil)
		s.wait(5 * time.Second)
		s.want("beat me@1")
		s.refuse(code)
		require.False(t, s.m.Status().Commits)
		s.want("lost hold[]@-1")
		s.wait(time.Minute)
		s.want("") // joins only once it holds nothing
		s.held("")
		s.want("beat me@0 timeout=30000 topics=t1 owns[]")
		s.answer(9, "t1:1")
		s.want("describe 1")
		s.name("t1")
		s.want("hold[t1:1]@9")
		s.refuse(code)
		s.want("") // an answer that nobody waits for
		s.held("t1:1")
		s.want("beat me@9 owns[t1:1]")
		s.refuse(code)
		s.want("lost hold[]@-1")
		s.held("")
		s.want("") // the second time in a row it takes its time
		require.Equal(t, s.now.Add(100*time.Millisecond), s.last.Wake)
		s.wait(100 * time.Millisecond)
		s.want("beat me@0 timeout=30000 topics=t1 owns[]")
	}
}

func TestConsumerIsFencedWhileItHoldsNothing(t *testing.T) {
	s := newBeats(t, nil)
	s.m.Subscribe(s.now, []string{"t1"})
	s.poll()
	s.answer(1, "")
	s.want("")
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.refuse(wire.ErrUnknownMemberID)
	s.want("beat me@0 timeout=30000 topics=t1 owns[]")
}

func TestConsumerSaysEverythingAfterAFailure(t *testing.T) {
	for what, fail := range map[string]func(s *beats){
		"a coordinator that loads": func(s *beats) { s.refuse(wire.ErrCoordinatorLoadInProgress) },
		"another coordinator":      func(s *beats) { s.refuse(wire.ErrNotCoordinator) },
		"no coordinator":           func(s *beats) { s.refuse(wire.ErrCoordinatorNotAvailable) },
		"no answer":                func(s *beats) { s.m.Answered(s.now, s.sent, nil, errLost) },
		"an answer without sense":  func(s *beats) { s.answer(0, "-") },
		"a negative partition":     func(s *beats) { s.answer(1, "t1:-4") },
		"a topic without id":       func(s *beats) { s.answer(1, ":1") },
	} {
		s := member(t, func(set *ConsumerSettings) { set.Rack, set.Assignor = "r1", "range" })
		s.wait(5 * time.Second)
		s.want("beat me@1")
		fail(s)
		s.want("")
		require.Equal(t, s.now.Add(100*time.Millisecond), s.last.Wake, what)
		s.wait(100 * time.Millisecond)
		s.want("beat me@1 rack=r1 assignor=range timeout=30000 topics=t1 owns[t1:0,1]")
		fail(s)
		s.want("")
		require.Equal(t, s.now.Add(200*time.Millisecond), s.last.Wake, what)
		s.wait(200 * time.Millisecond)
		s.want("beat me@1 rack=r1 assignor=range timeout=30000 topics=t1 owns[t1:0,1]")
		s.answer(1, "-")
		s.wait(5 * time.Second)
		s.want("beat me@1")
	}
}

// errLost is an answer that did not come.
var errLost = &lostError{}

type lostError struct{}

func (*lostError) Error() string     { return "connection lost" }
func (*lostError) Class() wire.Class { return wire.Retriable | wire.OutcomeUnknown }

func TestConsumerSaysAgainWhatMayNotHaveArrived(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(1, "t1:0")
	s.want("hold[t1:0]@1")
	s.held("t1:0")
	s.want("beat me@1 owns[t1:0]")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.want("") // after the backoff
	s.wait(100 * time.Millisecond)
	s.want("beat me@1 timeout=30000 topics=t1 owns[t1:0]")
	// The epoch that the lost answer told of comes with this one.
	s.answer(2, "t1:0")
	s.want("")
	require.True(t, s.m.Status().Settled)

	// While something is being given up, it counts as held: the coordinator must not think otherwise.
	s.wait(5 * time.Second)
	s.want("beat me@2")
	s.answer(2, "")
	s.want("hold[]@2")
	s.wait(5 * time.Second)
	s.want("beat me@2")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.wait(100 * time.Millisecond)
	s.want("beat me@2 timeout=30000 topics=t1 owns[t1:0]")
	s.answer(2, "-")
	s.held("")
	s.want("beat me@2 owns[]")
	s.answer(3, "t1:4")
	s.want("describe 1")
	s.name("t1")
	s.want("hold[t1:4]@3")
	s.wait(5 * time.Second)
	s.want("beat me@3")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.wait(100 * time.Millisecond)
	s.want("beat me@3 timeout=30000 topics=t1 owns[t1:4]") // the same while it is being begun with
}

func TestConsumerEndsForGood(t *testing.T) {
	for _, r := range []struct {
		code *wire.KafkaError
		want string
	}{
		{wire.ErrGroupAuthorizationFailed, "READ on the group is needed"},
		{wire.ErrTopicAuthorizationFailed, "DESCRIBE and READ on every topic"},
		{wire.ErrInvalidRequest, `being a member of group "g": INVALID_REQUEST`},
		{wire.ErrGroupMaxSizeReached, "group.max.size"},
		{wire.ErrUnsupportedAssignor, `("best"); the broker setting group.consumer.assignors lists them`},
		{wire.ErrInvalidRegularExpression, `("t(")`},
		{wire.ErrFencedInstanceID, `("i1"); give every member one of its own`},
		{wire.ErrGroupIDNotFound, "set consumer.group.protocol=classic"},
		{wire.ErrUnsupportedVersion, "UNSUPPORTED_VERSION"},
	} {
		s := newBeats(t, func(set *ConsumerSettings) { set.Assignor, set.Pattern, set.InstanceID = "best", "t(", "i1" })
		s.m.Subscribe(s.now, nil)
		s.want("beat me@0 instance=i1 regex=t( assignor=best timeout=30000 topics= owns[]")
		s.refuse(r.code)
		require.Contains(t, s.poll(), r.want)
		require.ErrorIs(t, s.last.Err, r.code)
		require.Zero(t, s.last.Wake)
		s.wait(time.Hour)
		require.Empty(t, s.last.Send)
		require.ErrorIs(t, s.m.Poll(s.now).Err, r.code, "and stays so")
	}
	s := newBeats(t, nil)
	s.m.Subscribe(s.now, nil)
	s.poll()
	s.m.Answered(s.now, s.sent, nil, errors.New("something nobody thought of"))
	require.Contains(t, s.poll(), "something nobody thought of")
}

func TestConsumerPutsUpWithNonsenseForAWhile(t *testing.T) {
	s := member(t, nil)
	for range answerTries - 1 {
		s.wait(5 * time.Second)
		require.Contains(t, s.poll(), "beat me@1")
		s.answer(-7, "-")
		s.want("")
	}
	s.wait(5 * time.Second)
	s.poll()
	s.answer(-7, "-")
	s.want(`error: being a member of group "g": the coordinator answered with member epoch -7`)
	require.Less(t, s.m.Status().Generation, int32(2))
	require.False(t, s.m.Status().Commits)
}

func TestConsumerWaitsForItsInstance(t *testing.T) {
	s := newBeats(t, func(set *ConsumerSettings) { set.InstanceID = "i1" })
	s.m.Subscribe(s.now, []string{"t1"})
	const join = "beat me@0 instance=i1 timeout=30000 topics=t1 owns[]"
	s.want(join)
	for range 3 {
		s.refuse(wire.ErrUnreleasedInstanceID)
		s.want("")
		s.wait(10 * time.Second)
		s.want(join)
	}
	s.wait(20 * time.Second)
	s.refuse(wire.ErrUnreleasedInstanceID)
	require.Contains(t, s.poll(), `UNRELEASED_INSTANCE_ID (error code 111): another member still uses the group.instance.id ("i1"); give every member one of its own`)

	s = newBeats(t, func(set *ConsumerSettings) { set.InstanceID = "i1" })
	s.m.Subscribe(s.now, []string{"t1"})
	s.want(join)
	s.refuse(wire.ErrUnreleasedInstanceID)
	s.wait(45 * time.Second)
	s.want(join)
	s.answer(2, "")
	s.want("")
	require.Equal(t, Identity{MemberID: "me", InstanceID: "i1", Generation: 2}, s.m.Status().Identity)
}

func TestConsumerLeaves(t *testing.T) {
	s := member(t, nil)
	s.m.Leave(s.now)
	s.want("beat me@-1")
	s.refuse(wire.ErrUnknownMemberID) // whatever the answer
	s.want("left")

	s = member(t, func(set *ConsumerSettings) { set.InstanceID = "i1" })
	s.m.Leave(s.now)
	s.want("beat me@-2 instance=i1")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.want("left")

	s = newBeats(t, nil)
	s.m.Leave(s.now)
	s.want("left") // it never joined

	s = newBeats(t, nil)
	s.m.Subscribe(s.now, nil)
	s.poll()
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.m.Leave(s.now)
	s.want("beat me@-1") // the lost join may have made it a member

	s = newBeats(t, nil)
	s.m.Subscribe(s.now, nil)
	s.poll()
	join := s.sent
	s.m.Leave(s.now)
	s.want("beat me@-1") // overtakes the answer to the join
	s.m.Answered(s.now, join, kmsg.NewPtrConsumerGroupHeartbeatResponse(), nil)
	s.want("")

	s = member(t, nil)
	s.wait(5 * time.Second)
	s.poll()
	s.refuse(wire.ErrFencedMemberEpoch)
	s.m.Leave(s.now)
	s.want("left") // the coordinator has forgotten it already

	s = member(t, nil)
	s.wait(5 * time.Second)
	s.poll()
	s.refuse(wire.ErrInvalidRequest)
	s.m.Leave(s.now)
	s.want("beat me@-1") // what ended it does not keep it from leaving
}

func TestConsumerSubscribesAnew(t *testing.T) {
	s := member(t, nil)
	s.m.Subscribe(s.now, []string{"t2", "t1"})
	s.want("beat me@1 topics=t1,t2") // at once
	s.answer(2, "t1:0,1 t2:0")
	s.want("describe 1")
	s.name("t2")
	s.want("hold[t1:0,1 t2:0]@2")
	s.m.Subscribe(s.now, []string{"t1", "t2"})
	s.want("") // the same as before
}

func TestConsumerRefusedCommits(t *testing.T) {
	s := member(t, nil)
	who := s.m.Status().Identity
	s.m.Refused(s.now, who, wire.ErrStaleMemberEpoch)
	s.want("beat me@1 timeout=30000 topics=t1 owns[t1:0,1]") // it learns its epoch
	s.answer(2, "-")
	s.m.Refused(s.now, who, wire.ErrUnknownMemberID)
	s.want("") // that was another epoch's
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrUnknownMemberID)
	s.want("lost hold[]@-1")

	s = member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrStaleMemberEpoch)
	s.answer(2, "-") // to what was said before
	s.want("beat me@2 timeout=30000 topics=t1 owns[t1:0,1]")
	s.answer(2, "-")
	s.want("")

	s = member(t, nil)
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrFencedInstanceID)
	require.Contains(t, s.poll(), "FENCED_INSTANCE_ID")

	s = member(t, nil)
	s.m.Refused(s.now, s.m.Status().Identity, wire.ErrOffsetMetadataTooLarge)
	s.want("") // of the commit alone
}

func TestConsumerATopicMadeAnew(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(2, "t9:0,1") // another id
	s.want("describe 1 | hold[]@2")
	s.held("")
	s.want("beat me@2 owns[t9:0,1]") // it will hold it before it hears anything else
	s.answer(2, "-")
	s.m.Described(s.now, s.asks, map[string]Topic{"t1": {ID: topicID("t9"), Partitions: 2}}, nil)
	s.want("hold[t1:0,1]@2") // of the same name
	s.held("t1:0,1")
	s.want("beat me@2 owns[t9:0,1]")
}

func TestConsumerATopicThatHasNoName(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(2, "t1:0,1 gone:0")
	s.want("describe 1")
	s.m.Described(s.now, s.asks, nil, errLost)
	var waits []time.Duration
	for range 3 {
		s.want("")
		wake := s.last.Wake.Sub(s.now)
		waits = append(waits, wake)
		s.wait(wake)
		s.want("describe 1")
		s.name("t1")
	}
	require.True(t, slices.IsSorted(waits), "less and less often: %v", waits)
	require.False(t, s.m.Status().Settled)
	s.m.Described(s.now, 99, map[string]Topic{"gone": {ID: topicID("gone")}}, nil)
	s.want("") // an answer to nothing
	s.wait(5*time.Second - time.Millisecond)
	s.poll()
	s.answer(3, "t1:0,1") // deleted in the end
	s.want("beat me@3 owns[t1:0,1]")
	s.answer(3, "-")
	require.True(t, s.m.Status().Settled)
}

func TestConsumerIntervalIsBounded(t *testing.T) {
	for asked, want := range map[int32]time.Duration{-5: shortestBeat, 0: shortestBeat, 3000: 3 * time.Second, 1 << 30: longestBeat} {
		s := member(t, nil)
		s.wait(5 * time.Second)
		s.poll()
		resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
		resp.MemberEpoch, resp.HeartbeatIntervalMillis = 1, asked
		s.m.Answered(s.now, s.sent, resp, nil)
		s.want("")
		require.Equal(t, want, s.last.Wake.Sub(s.now))
	}
}
