package client

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// long is a message that has its batch deferred when it is the first one there.
func long(value string) *ProducerMessage { return to(0, value+strings.Repeat(".", deferFrom)) }

// ready makes a producer that knows partition 0 of the topic, and that takes each message into its
// batch at once.
func (b *fakeBroker) ready(t *testing.T, cfg *Config, start time.Time) *AsyncProducer {
	cfg.Producer.Flush.Messages = 1000
	p := b.producer(t, cfg)
	b.send(t, p, start, to(0, "known"))
	return p
}

// recorder keeps the batches of every Produce request, as they came.
type recorder struct{ sent [][]byte }

func (r *recorder) take(req *kmsg.ProduceRequest) {
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			r.sent = append(r.sent, bytes.Clone(p.Records))
		}
	}
}

// Which batches are deferred is up to their first message, and to whether they are compressed.
func TestBatchesOfLargeMessagesAreDeferred(t *testing.T) {
	for _, tc := range []struct {
		name  string
		codec record.Codec
		first *ProducerMessage
		want  bool
	}{
		{"a small message is encoded when it comes", record.None, to(0, "small"), false},
		{"a large one later", record.None, long("large"), true},
		{"headers count", record.None, &ProducerMessage{Topic: "t", Headers: []Header{{Key: "k", Value: make([]byte, deferFrom)}}}, true},
		{"not when it will be compressed", record.LZ4, long("large"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &AsyncProducer{}
			p.cfg.Producer.Compression = tc.codec
			b := newBatch(&partitionProducer{producer: p}, 0, time.UnixMilli(1000), 0)
			tc.first.size = uint32(tc.first.payloadBytes())
			n, panicked := b.add([]*ProducerMessage{tc.first, to(0, "next")}, 1000, 1<<20, 0)
			require.Nil(t, panicked)
			require.Equal(t, 2, n)
			require.Equal(t, tc.want, b.deferred.on)
			require.Equal(t, 2, b.builder.Count())
			require.Equal(t, tc.want, len(b.builder.Bytes()) == record.HeaderSize, "nothing was encoded yet")
		})
	}
}

// A deferred batch that is sent again is the same, byte for byte, though it is encoded anew and its
// messages got their times from different readings of the clock; and what is encoded in its place
// meanwhile does not show in it.
func TestADeferredBatchIsTheSameWhenSentAgain(t *testing.T) {
	var r recorder
	b := &fakeBroker{partitions: 1}
	b.answer = func(n int, req *kmsg.ProduceRequest) ruling {
		r.take(req)
		if n == 1 || n == 3 {
			return ruling{code: wire.ErrNotLeaderOrFollower.Code, delay: time.Second}
		}
		return ruling{}
	}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Idempotent = true
		cfg.Producer.Flush.Frequency = time.Minute
		p := b.ready(t, cfg, start)
		out := newHeard(start)
		own := long("c")
		own.Timestamp = start.Add(-time.Hour)
		runs := [][]*ProducerMessage{{long("a"), to(0, "b")}, {own}, {long("d")}}
		for _, run := range runs {
			time.Sleep(clockEvery * time.Millisecond) // on the virtual clock
			p.parts[0].sinceRead = clockEvery         // the next message has the clock read
			_, err := p.ProduceRun(context.Background(), run, out)
			require.NoError(t, err)
		}
		require.NoError(t, p.Flush(context.Background()))
		_, err := p.ProduceRun(context.Background(), []*ProducerMessage{long("e")}, out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(context.Background()))

		ok, bad := out.count()
		require.Equal(t, []int{5, 0}, []int{ok, bad})
		require.Len(t, r.sent, 5)
		r.sent = r.sent[1:]
		require.Equal(t, r.sent[0], r.sent[1])
		require.Equal(t, r.sent[2], r.sent[3])
		require.NotEqual(t, r.sent[0], r.sent[2])
		batch, _, err := record.Next(r.sent[0])
		require.NoError(t, err)
		require.NoError(t, batch.CheckCRC())
		var times []int64
		section, err := batch.Decompressed(new(record.Decompressor), nil, 1<<30)
		require.NoError(t, err)
		for range batch.Count {
			var rec record.Record
			section, err = record.ReadRecord(section, &rec)
			require.NoError(t, err)
			times = append(times, batch.FirstTimestamp+rec.TimestampDelta)
		}
		first := start.Add(clockEvery * time.Millisecond).UnixMilli()
		require.Equal(t, []int64{first, first, start.Add(-time.Hour).UnixMilli(), first + 2*clockEvery}, times)
	})
}

// What one batch's messages say is what arrives, whatever sizes follow each other: batches that are
// deferred and those that are not, of several partitions in one request.
func TestDeferredBatchesBesideOthers(t *testing.T) {
	b := &fakeBroker{partitions: 4}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Flush.Frequency = time.Second
		cfg.Producer.Partitioner = "manual"
		p := b.producer(t, cfg)
		var run []*ProducerMessage
		want := map[int32][]string{}
		for i := range 400 {
			at := int32(i % 4)
			m := to(at, strings.Repeat("x", (i*i*37)%1500)+string(rune('a'+i%26)))
			run, want[at] = append(run, m), append(want[at], string(m.Value))
		}
		out := newHeard(start)
		for part := range slices.Chunk(run, 100) {
			_, err := p.ProduceRun(context.Background(), part, out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(context.Background()))
		}
		for at := range want {
			require.Equal(t, len(want[at]), len(b.log[at]), "partition %d", at)
			require.True(t, slices.Equal(want[at], b.log[at]), "partition %d", at)
		}
	})
}

// A deferred batch that the broker finds too large is sent as smaller ones.
func TestADeferredBatchIsSplit(t *testing.T) {
	b := &fakeBroker{partitions: 1, limit: 2000, silent: true}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Flush.Frequency = time.Second
		p := b.producer(t, cfg)
		var run []*ProducerMessage
		var want []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			run = append(run, long(name))
			want = append(want, string(run[len(run)-1].Value))
		}
		out := b.send(t, p, start, run...)
		ok, bad := out.count()
		require.Equal(t, []int{7, 0}, []int{ok, bad})
		require.Equal(t, want, b.log[0])
	})
}

// A message that is changed before it has its outcome, which it must not be, fails its batch and
// says so; the producer goes on.
func TestAMessageThatIsChangedFailsItsDeferredBatch(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*ProducerMessage)
		check  func(*testing.T, error)
	}{
		{"to another size", func(m *ProducerMessage) { m.Value = m.Value[1:] }, func(t *testing.T, err error) { require.ErrorIs(t, err, errChanged) }},
		{"to something that cannot be read", func(m *ProducerMessage) { m.Headers = []Header{{Key: unreadable(10)}} }, func(t *testing.T, err error) {
			var panicked *PanicError
			require.ErrorAs(t, err, &panicked)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.Idempotent = true
				cfg.Producer.Flush.Frequency = time.Minute
				p := b.ready(t, cfg, start)
				failed := map[*ProducerMessage]error{}
				bad, beside := long("bad"), long("beside")
				_, err := p.ProduceRun(context.Background(), []*ProducerMessage{beside, bad}, deliveriesFunc(func(batch []*ProducerMessage, d Delivery) {
					for _, m := range batch {
						failed[m] = d.Err
					}
				}))
				require.NoError(t, err)
				tc.change(bad)
				require.NoError(t, p.Flush(context.Background()))
				require.Len(t, failed, 2)
				tc.check(t, failed[bad])
				tc.check(t, failed[beside])

				after := long("after")
				out := b.send(t, p, start, after)
				_, err = out.of(string(after.Value))
				require.NoError(t, err)
				require.Equal(t, []string{"known", string(after.Value)}, b.log[0])
				require.EqualValues(t, 1, b.arrived[1].sequence, "nothing of the failed batch was numbered for good")
			})
		})
	}
}

// While a deferred batch is being encoded its messages do not get their outcome, since their owner
// could change them then; one whose time runs out meanwhile gets it right after.
func TestNothingExpiresWhileItIsEncoded(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.DeliveryTimeout = time.Minute
		cfg.Producer.Flush.Frequency = time.Hour
		p := b.ready(t, cfg, start)
		b.answer = func(int, *kmsg.ProduceRequest) ruling { return ruling{delay: time.Hour} }
		out := newHeard(start)
		m := long("m")
		_, err := p.ProduceRun(context.Background(), []*ProducerMessage{m}, out)
		require.NoError(t, err)
		pp := p.parts[0]
		pp.mu.Lock()
		by := pp.broker
		pp.taken = -1 // in no turn
		pp.mu.Unlock()
		x, _, _ := pp.take(by, nil, identity{}, time.Now(), math.MaxInt)
		require.NotNil(t, x)

		require.Zero(t, pp.expireLate(start.Add(2*time.Minute)))
		time.Sleep(2 * cfg.Producer.DeliveryTimeout) // on the virtual clock: its time runs out
		_, err = out.of(string(m.Value))
		require.NoError(t, err)
		ok, bad := out.count()
		require.Zero(t, ok+bad, "it is being encoded")

		x.encodedNow()
		time.Sleep(time.Millisecond) // on the virtual clock: the timer that this set goes off
		_, err = out.of(string(m.Value))
		require.True(t, errors.Is(err, ErrDeliveryTimeout), err)
	})
}
