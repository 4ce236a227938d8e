package client

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/wire"
)

// LogTruncatedError says that the log is not the one that was read any more: the leader's ends
// before the position, or goes on in another way, as happens when a replica that lagged behind
// became the leader (KIP-320). It is returned when the policy for positions that are not in the
// log (consumer.outOfRange) is error; with the others the reader goes on where the logs part.
type LogTruncatedError struct {
	Offset int64 // the position
	Epoch  int32 // of the leader that wrote the record before Offset
	// End is where the part ends that both logs have, and EndEpoch the epoch of its last record.
	End      int64
	EndEpoch int32
}

func (e *LogTruncatedError) Error() string {
	return fmt.Sprintf("the log was truncated: it was read to offset %d, and the leader's differs from offset %d on (leader epoch %d, not %d); "+
		"SetOffset, or set consumer.outOfRange to earliest or latest", e.Offset, e.End, e.EndEpoch, e.Epoch)
}

// TopicRecreatedError says that a topic was deleted and made again, so that a position in it means
// nothing. It is returned when the policy for positions that are not in the log
// (consumer.outOfRange) is error.
type TopicRecreatedError struct {
	Topic  string
	Offset int64 // the position
}

func (e *TopicRecreatedError) Error() string {
	return fmt.Sprintf("topic %q was deleted and made again: offset %d is one of the topic before; "+
		"SetOffset, or set consumer.outOfRange to earliest or latest", e.Topic, e.Offset)
}

// epochAnswer is what a leader says of a partition's leader epochs.
type epochAnswer struct {
	tp            topicPartition
	current, last int32 // epoch of the leader, and of the last record read
	asked         bool
	// unchecked: the broker cannot tell.
	unchecked bool
	endEpoch  int32 // the largest epoch not above last; -1: none
	end       int64 // where it ends
	err       error
}

// firstEpochs is the first version of OffsetForLeaderEpoch that is open to consumers: the ones
// before need the rights of a broker.
const firstEpochs = 3

// askEpochs fills in the answers with one request.
func (s *source) askEpochs(asks []*epochAnswer) {
	version, err := s.conn.Version(keyOffsetForLeaderEpoch)
	if err != nil || version < firstEpochs {
		for _, a := range asks {
			a.unchecked = true
		}
		return
	}
	for _, a := range asks {
		a.err = fmt.Errorf("leader epochs of %v: %w", a.tp, errLeftOut)
	}
	got, err := s.conn.Do(s.r.life, epochsRequest(asks))
	resp, ok := got.(*kmsg.OffsetForLeaderEpochResponse)
	if err == nil && !ok {
		err = fmt.Errorf("answered OffsetForLeaderEpoch with %T", got)
	}
	if err != nil {
		for _, a := range asks {
			a.err = err
		}
		return
	}
	takeEpochs(asks, resp)
}

const keyOffsetForLeaderEpoch = 23

func epochsRequest(asks []*epochAnswer) *kmsg.OffsetForLeaderEpochRequest {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	at := map[string]int{}
	for _, a := range asks {
		i, known := at[a.tp.topic]
		if !known {
			i = len(req.Topics)
			at[a.tp.topic] = i
			topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
			topic.Topic = a.tp.topic
			req.Topics = append(req.Topics, topic)
		}
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = a.tp.id, a.current, a.last
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return req
}

// takeEpochs takes in an answer; what was not asked for is ignored.
func takeEpochs(asks []*epochAnswer, resp *kmsg.OffsetForLeaderEpochResponse) {
	wanted := make(map[topicPartition]*epochAnswer, len(asks))
	for _, a := range asks {
		wanted[a.tp] = a
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			a := wanted[topicPartition{resp.Topics[i].Topic, p.Partition}]
			if a == nil {
				continue
			}
			a.endEpoch, a.end, a.err = p.LeaderEpoch, p.EndOffset, nil
			if err := wire.ErrorFor(p.ErrorCode); err != nil {
				a.err = fmt.Errorf("leader epochs of %v: %w", a.tp, err)
			}
		}
	}
}

// checkedLocked takes in what the leader says of the epoch under which a partition was read.
func (s *source) checkedLocked(p *partition, a *epochAnswer, now time.Time) {
	if a.err != nil {
		s.r.failLocked(p, &addressError{s.broker.addr, a.err}, now)
		return
	}
	p.Need, p.checked = fetch.Nothing, a.current
	// A leader that has nothing to compare with says -1. It refuses a fetch from behind its end.
	if !a.unchecked && a.endEpoch >= 0 && a.end >= 0 && a.end < p.Next {
		s.truncatedLocked(p, a.endEpoch, a.end, now)
		return
	}
	s.changed(p)
}

// truncatedLocked takes in that the leader's log is the one that was read only to before end.
func (s *source) truncatedLocked(p *partition, epoch int32, end int64, now time.Time) {
	r := s.r
	err := &LogTruncatedError{Offset: p.Next, Epoch: p.lastEpoch, End: end, EndEpoch: epoch}
	p.lastEpoch = epoch
	if r.policy == fetch.Refuse {
		r.failLocked(p, err, now)
		return
	}
	r.log.Warn("the log was truncated", "topic", p.topic, "partition", p.id, "error", err)
	r.stats.Resets++
	p.Next = min(p.Next, end)
	r.queueMoveLocked(p)
	p.Failed(now, r.backoff) // a broker that finds something wrong again and again is not asked without end
	r.looseLocked(p, true)
}

// restartLocked goes to the end of the log that the policy names.
func (r *Reader) restartLocked(p *partition) {
	to := LastOffset
	if r.policy == fetch.Earliest {
		to = FirstOffset
	}
	r.cutLocked(p)
	r.seekLocked(p, to)
}

// identifyLocked takes in the id of a partition's topic and the epoch of its leader, as the
// cluster describes them now. False: the partition has to be placed in another way than was meant.
func (r *Reader) identifyLocked(p *partition, id [16]byte, epoch int32, now time.Time) bool {
	before := p.topicID
	if id != [16]byte{} {
		p.topicID = id
	}
	if before != [16]byte{} && before != p.topicID {
		p.epoch, p.lastEpoch, p.checked = -1, -1, -1
		if r.policy == fetch.Refuse {
			r.failLocked(p, &TopicRecreatedError{Topic: p.topic, Offset: p.Next}, now)
			return false
		}
		r.log.Warn("topic made again", "topic", p.topic, "partition", p.id, "offset", p.Next)
		r.stats.Resets++
		r.restartLocked(p)
		return false
	}
	p.epoch = epoch
	if p.Need != fetch.Nothing || p.lastEpoch < 0 || epoch <= max(p.checked, p.lastEpoch) {
		p.checked = max(p.checked, epoch) // what is read from here on is of this leader's log
		return true
	}
	p.Need = fetch.CheckEpoch
	if p.replica < 0 {
		return true
	}
	p.replica = -1 // the leader knows
	signal(r.wakeDirector)
	return false
}
