package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// While an order is under way the coordinator is not told at once of the one before.
func TestConsumerSaysWhatItHoldsWhenNothingIsUnderWay(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(2, "t1:0")
	s.want("hold[t1:0]@2")
	s.wait(5 * time.Second)
	s.want("beat me@2")
	s.held("t1:0")
	s.answer(2, "t1:0,5")
	s.want("hold[t1:0,5]@2")
	s.held("t1:0,5")
	s.want("beat me@2 owns[t1:0,5]")
}

// Two topics of one name are one that was deleted and one that was made: only the latter is read.
func TestConsumerTwoTopicsOfOneName(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(2, "t1:0 t9:0")
	s.want("describe 1 | hold[t1:0]@2")
	s.held("t1:0")
	s.poll()
	s.answer(2, "-")
	s.m.Described(s.now, s.asks, map[string]Topic{"t1": {ID: topicID("t5")}}, nil)
	s.want("") // one that nobody asked for takes no name away
	s.wait(time.Second)
	s.want("describe 1")
	s.m.Described(s.now, s.asks, map[string]Topic{"t1": {ID: topicID("t9")}}, nil)
	s.want("") // the same partitions
	require.Equal(t, map[[16]byte]string{topicID("t9"): "t1"}, s.m.names)
}

func TestConsumerForgetsHowOftenATopicHadNoName(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.poll()
	s.answer(2, "t1:0,1 t2:0")
	s.want("describe 1")
	for range 3 {
		s.name("t1")
		s.want("")
		s.wait(s.last.Wake.Sub(s.now))
		s.want("describe 1")
	}
	s.name("t2")
	s.want("hold[t1:0,1 t2:0]@2")
	s.held("t1:0,1 t2:0")
	s.poll()
	s.answer(3, "t1:0,1 t2:0 t3:0")
	s.want("describe 1")
	s.name("t1")
	s.want("")
	require.Equal(t, 100*time.Millisecond, s.last.Wake.Sub(s.now))
}

func TestConsumerForgetsTopicsItDoesNotHold(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.poll()
	s.answer(2, "")
	s.want("hold[]@2")
	s.held("")
	require.Empty(t, s.m.heldIDs)
	require.Empty(t, s.m.names)
}

func TestConsumerForgetsWhatWentWellAgain(t *testing.T) {
	s := member(t, nil)
	for range 3 * answerTries { // nonsense counts in a row only
		s.wait(5 * time.Second)
		require.Contains(t, s.poll(), "beat me@1")
		s.answer(-7, "-")
		s.want("")
		s.wait(5 * time.Second)
		require.Contains(t, s.poll(), "beat me@1")
		s.answer(1, "-")
		s.want("")
	}

	s = newBeats(t, func(set *ConsumerSettings) { set.InstanceID = "i1" })
	s.m.Subscribe(s.now, []string{"t1"})
	for range 3 { // each time it may wait as long as that
		s.poll()
		s.refuse(wire.ErrUnreleasedInstanceID)
		s.wait(45 * time.Second)
		require.Contains(t, s.poll(), "beat me@0")
		s.answer(2, "")
		s.want("")
		s.wait(5 * time.Second)
		s.poll()
		s.refuse(wire.ErrUnknownMemberID)
		require.NotContains(t, s.poll(), "error")
		s.wait(time.Second)
	}

	s = newBeats(t, nil)
	s.m.Subscribe(s.now, []string{"t1"})
	for range 3 { // fenced, but not in a row: it joins at once
		require.Contains(t, s.poll(), "beat me@0")
		s.answer(1, "")
		s.wait(5 * time.Second)
		s.want("beat me@1")
		s.answer(1, "-")
		s.wait(5 * time.Second)
		s.want("beat me@1")
		s.refuse(wire.ErrFencedMemberEpoch)
	}
	require.Contains(t, s.poll(), "beat me@0")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.want("")
	require.Equal(t, 100*time.Millisecond, s.last.Wake.Sub(s.now), "being fenced was no failure")
}

func TestConsumerAPartitionGivenTwice(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.answer(1, "t1:0,0,1")
	s.want("") // nothing new
}

func TestConsumerATopicOfWhichItGetsNothing(t *testing.T) {
	s := member(t, nil)
	s.wait(5 * time.Second)
	s.want("beat me@1")
	a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	for _, of := range []struct {
		name       string
		partitions []int32
	}{{"t1", []int32{0, 1}}, {"t2", nil}} {
		topic := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
		topic.TopicID, topic.Partitions = topicID(of.name), of.partitions
		a.Topics = append(a.Topics, topic)
	}
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.MemberEpoch, resp.HeartbeatIntervalMillis, resp.Assignment = 1, 5000, &a
	s.m.Answered(s.now, s.sent, resp, nil)
	s.want("") // nor is its name asked for
}

// However long the failures have gone on: a session must not end because of the backoff.
func TestConsumerThatIsOneBeatsAsOftenAsItHasTo(t *testing.T) {
	s := member(t, func(set *ConsumerSettings) { set.Backoff = func(int) time.Duration { return time.Hour } })
	s.wait(5 * time.Second)
	s.want("beat me@1")
	s.m.Answered(s.now, s.sent, nil, errLost)
	s.want("")
	require.Equal(t, 5*time.Second, s.last.Wake.Sub(s.now))
}
