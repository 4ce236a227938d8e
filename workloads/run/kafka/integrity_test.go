package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/broker"
	"github.com/kbench/kbench/workloads/run"
)

// tampering does something to the batches of Produce requests on their way into the embedded broker.
type tampering struct {
	cluster *broker.Cluster
	mu      sync.Mutex
	seen    int
	// batch is given the number of the batch and its bytes; what it returns is stored, nil is not, and
	// is acknowledged all the same.
	batch func(i int, records []byte) []byte
}

const produce = 0

// begin lets the tampering begin with the next Produce request.
func (x *tampering) begin() { x.cluster.Answer(produce, x.request) }

func (x *tampering) request(_ int32, r kmsg.Request) (kmsg.Response, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	req := r.(*kmsg.ProduceRequest)
	p := &req.Topics[0].Partitions[0] // the loads of these tests have one partition
	changed := x.batch(x.seen, p.Records)
	x.seen++
	if changed != nil {
		p.Records = changed
		return nil, nil // the broker stores it, and this stays in force
	}
	x.begin() // an answer ends it
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
	part := kmsg.NewProduceResponseTopicPartition()
	part.Partition = p.Partition
	topic.Partitions = append(topic.Partitions, part)
	resp.Topics = append(resp.Topics, topic)
	return resp, nil
}

// messagesIn is the number of records of a batch.
func messagesIn(batch []byte) int64 { return int64(binary.BigEndian.Uint32(batch[57:])) }

// alter changes the last byte of the last value of a batch, and its checksum so that the broker and the
// client take it: only the message itself can tell.
func alter(batch []byte) []byte {
	batch[len(batch)-2] ^= 0x20 // the last byte of all says that there are no headers
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// Each count of integrity, by what a broker would have to do for it.
func TestIntegrityOnABroker(t *testing.T) {
	const messages = 500
	for _, tc := range []struct {
		name   string
		tamper func(want *results.Counts, i int, batch []byte) []byte
		lose   int // answers to Produce that are lost
		broken []string
	}{
		{name: "acknowledged and not stored is lost", broken: []string{"lost=0"},
			tamper: func(want *results.Counts, i int, batch []byte) []byte {
				if i%7 != 3 {
					return batch
				}
				want.Lost += messagesIn(batch)
				return nil
			}},
		{name: "a value of which a bit changed is corrupted, and what was sent is lost", broken: []string{"lost=0", "corrupted=0"},
			tamper: func(want *results.Counts, i int, batch []byte) []byte {
				if i%9 != 2 {
					return batch
				}
				want.Corrupted++
				want.Lost++
				return alter(batch)
			}},
		{name: "what is stored behind later ones is reordered", broken: []string{"lost=0", "reordered=0"},
			tamper: func() func(*results.Counts, int, []byte) []byte {
				var held []byte
				return func(want *results.Counts, i int, batch []byte) []byte {
					switch i {
					case 4:
						held = append(held, batch...)
						return nil
					case 8: // instead of this one, which is lost
						want.Lost, want.Reordered = messagesIn(batch), messagesIn(held)
						return held
					}
					return batch
				}
			}()},
		{name: "what is sent again after a lost answer is duplicated, which at least once allows", lose: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, 1)
			b := bench{d: load(messages), cfg: client.NewConfig()}
			b.cfg.Producer.Idempotent = false
			b.d.Topics.Partitions, b.d.Producers.Count, b.d.Consumers.Count, b.d.Phases.WarmUp = 1, 1, 1, 0
			var want results.Counts
			if tc.tamper != nil {
				x := &tampering{cluster: c, batch: func(i int, batch []byte) []byte { return tc.tamper(&want, i, batch) }}
				x.begin()
			}
			c.LoseAnswers(produce, tc.lose)
			_, spec := b.target(c.Bootstrap())
			spec.Quiet = time.Second // this broker has no followers to wait for
			out, err := run.Execute(within(t), spec)
			require.NoError(t, err)
			got := out.Run.Counts
			require.EqualValues(t, messages, got.Acked)
			require.Equal(t, []int64{want.Lost, want.Corrupted, want.Reordered}, []int64{got.Lost, got.Corrupted, got.Reordered})
			if tc.lose > 0 {
				require.GreaterOrEqual(t, got.Duplicated, int64(tc.lose))
				require.Equal(t, messages+got.Duplicated, got.Received)
			} else {
				require.Positive(t, want.Lost, "the fault came in time")
				require.Zero(t, got.Duplicated)
			}
			require.Equal(t, tc.broken, brokenOf(out))
		})
	}
}

// brokenOf are the thresholds that did not hold.
func brokenOf(out *run.Outcome) (broken []string) {
	for _, t := range out.Run.Thresholds {
		if !t.Held {
			broken = append(broken, t.Expression)
		}
	}
	return broken
}
