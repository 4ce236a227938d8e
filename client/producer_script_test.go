package client

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// fakeBroker is a broker with topic "t" on pipes, for tests on a virtual clock: every message that
// arrives is noted with its time, and the test decides what is answered, and when.
type fakeBroker struct {
	partitions int
	limit      int           // of the topic's max.message.bytes; 0: none
	silent     bool          // it does not tell the limit
	asking     chan struct{} // it tells the limit once this is closed; nil: at once

	mu         sync.Mutex
	noTopic    bool     // it does not know the topic
	topics     []string // others that it knows
	leaderless map[int32]bool
	// answer decides about the n-th Produce request, from 0; nil: success at once.
	answer   func(n int, req *kmsg.ProduceRequest) ruling
	requests int
	asked    map[int16]int // requests by key
	arrived  []arrival
	log      map[int32][]string // values that were accepted, by partition
	server   *rawserver.Server

	// coordinate answers what transactional producers ask their coordinators; nil: nothing is asked.
	coordinate func(raw rawserver.Request, req kmsg.Request) rawserver.Reply
}

// ruling is what happens to a Produce request.
type ruling struct {
	code     int16         // for every partition
	wait     chan struct{} // hold the answer until it is closed
	delay    time.Duration // and for this long
	throttle time.Duration
	hangUp   bool // close the connection instead of answering
	applied  bool // with hangUp or a code: the messages are in the log all the same
}

// arrival is one batch as it came.
type arrival struct {
	at        time.Duration // since the test began
	partition int32
	values    []string
	bytes     int
	codec     record.Codec
	sequence  int32 // of the first
}

// onPipes runs a test in a bubble with a virtual clock, against b.
func onPipes(t *testing.T, b *fakeBroker, test func(t *testing.T, start time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b.asked, b.log = map[int16]int{}, map[int32][]string{}
		if b.leaderless == nil {
			b.leaderless = map[int32]bool{}
		}
		b.server = rawserver.StartPipes(rawserver.Script{Handle: func(r rawserver.Request) rawserver.Reply { return b.handle(t, start, r) }})
		defer b.server.Close()
		test(t, start)
	})
}

// config is quickConfig on the broker's pipes.
func (b *fakeBroker) config() *Config {
	cfg := quickConfig()
	cfg.Net.Dialer = func(context.Context, string, string) (net.Conn, error) { return b.server.Pipe() }
	return cfg
}

// producer makes one that is closed in the bubble.
func (b *fakeBroker) producer(t *testing.T, cfg *Config) *AsyncProducer {
	p, err := NewAsyncProducer([]string{"pipe:1"}, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = closeWithin(t, p, time.Second) })
	return p
}

// came is how many requests of an API key have come.
func (b *fakeBroker) came(key int16) (n int) {
	b.set(func() { n = b.asked[key] })
	return n
}

// set changes what the broker does, under its lock.
func (b *fakeBroker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *fakeBroker) batches() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]arrival(nil), b.arrived...)
}

func (b *fakeBroker) handle(t *testing.T, start time.Time, raw rawserver.Request) rawserver.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[raw.Key]++
	switch req := raw.Decode().(type) {
	case *kmsg.MetadataRequest:
		return rawserver.Respond(raw, b.describe(req))
	case *kmsg.FindCoordinatorRequest, *kmsg.AddPartitionsToTxnRequest, *kmsg.AddOffsetsToTxnRequest, *kmsg.EndTxnRequest, *kmsg.TxnOffsetCommitRequest:
		if b.coordinate != nil {
			return b.coordinate(raw, req)
		}
	case *kmsg.InitProducerIDRequest:
		r := kmsg.NewPtrInitProducerIDResponse()
		r.ProducerID = 1
		return rawserver.Respond(raw, r)
	case *kmsg.DescribeConfigsRequest:
		reply := rawserver.Respond(raw, b.settings(req))
		reply.Wait = b.asking
		return reply
	case *kmsg.ProduceRequest:
		return b.produce(t, start, raw, req)
	}
	t.Errorf("request %d was not expected", raw.Key)
	return rawserver.Reply{Close: true}
}

func (b *fakeBroker) describe(req *kmsg.MetadataRequest) kmsg.Response {
	r := kmsg.NewPtrMetadataResponse()
	node := kmsg.NewMetadataResponseBroker()
	node.NodeID, node.Host, node.Port = 1, "pipe", 1
	r.Brokers = append(r.Brokers, node)
	for _, asked := range req.Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = asked.Topic
		if (b.noTopic || *asked.Topic != "t") && !slices.Contains(b.topics, *asked.Topic) {
			topic.ErrorCode = wire.ErrUnknownTopicOrPartition.Code
			r.Topics = append(r.Topics, topic)
			continue
		}
		for i := range int32(b.partitions) {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.Leader = i, 1
			if b.leaderless[i] {
				p.Leader, p.ErrorCode = -1, wire.ErrLeaderNotAvailable.Code
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func (b *fakeBroker) settings(req *kmsg.DescribeConfigsRequest) kmsg.Response {
	r := kmsg.NewPtrDescribeConfigsResponse()
	res := kmsg.NewDescribeConfigsResponseResource()
	res.ResourceType, res.ResourceName = req.Resources[0].ResourceType, req.Resources[0].ResourceName
	if b.silent {
		res.ErrorCode = 29 // TOPIC_AUTHORIZATION_FAILED
	} else {
		s := kmsg.NewDescribeConfigsResponseResourceConfig()
		s.Name, s.Value = "max.message.bytes", kmsg.StringPtr(fmt.Sprint(b.limit))
		res.Configs = append(res.Configs, s)
	}
	r.Resources = append(r.Resources, res)
	return r
}

func (b *fakeBroker) produce(t *testing.T, start time.Time, raw rawserver.Request, req *kmsg.ProduceRequest) rawserver.Reply {
	v := ruling{}
	if b.answer != nil {
		v = b.answer(b.requests, req)
	}
	b.requests++
	r := kmsg.NewPtrProduceResponse()
	r.ThrottleMillis = int32(v.throttle.Milliseconds())
	for _, topic := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = topic.Topic
		for _, p := range topic.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.BaseOffset = p.Partition, v.code, -1
			a := arrival{at: time.Since(start), partition: p.Partition, bytes: len(p.Records)}
			a.values, a.codec, a.sequence = valuesOf(t, p.Records)
			b.arrived = append(b.arrived, a)
			switch {
			case b.limit > 0 && a.bytes > b.limit:
				rp.ErrorCode = wire.ErrMessageTooLarge.Code
			case v.code == 0 && !v.hangUp || v.applied:
				rp.BaseOffset = int64(len(b.log[p.Partition]))
				b.log[p.Partition] = append(b.log[p.Partition], a.values...)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		r.Topics = append(r.Topics, rt)
	}
	reply := rawserver.Reply{Wait: v.wait, Delay: v.delay, Close: v.hangUp}
	if !v.hangUp && req.Acks != 0 {
		reply.Body = rawserver.Respond(raw, r).Body
	}
	return reply
}

// valuesOf are the values of a batch.
func valuesOf(t testing.TB, records []byte) (values []string, codec record.Codec, sequence int32) {
	b, _, err := record.Next(records)
	if err != nil {
		t.Error(err)
		return nil, record.None, -1
	}
	section, err := b.Decompressed(new(record.Decompressor), nil, 1<<30)
	for range b.Count {
		var r record.Record
		if err == nil {
			section, err = record.ReadRecord(section, &r)
		}
		values = append(values, string(r.Value))
	}
	if err != nil {
		t.Error(err)
	}
	return values, b.Codec(), b.BaseSequence
}

// heard notes when each message, by its value, had its outcome, and what it was.
type heard struct {
	start time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
	errs  map[string]error
	twice []string
}

func newHeard(start time.Time) *heard {
	return &heard{start: start, at: map[string]time.Duration{}, errs: map[string]error{}}
}

func (o *heard) Delivered(batch []*ProducerMessage, d Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range batch {
		if _, had := o.at[string(m.Value)]; had {
			o.twice = append(o.twice, string(m.Value))
		}
		o.at[string(m.Value)], o.errs[string(m.Value)] = time.Since(o.start), d.Err
	}
}

func (o *heard) of(value string) (time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at[value], o.errs[value]
}

func (o *heard) count() (ok, bad int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, err := range o.errs {
		if err == nil {
			ok++
		} else {
			bad++
		}
	}
	return ok, bad
}

// to is a message to one partition, for the manual partitioner.
func to(partition int32, value string) *ProducerMessage {
	return &ProducerMessage{Topic: "t", Partition: partition, Value: []byte(value)}
}

// closeWithin closes a producer in the bubble.
func closeWithin(t *testing.T, p *AsyncProducer, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.Close(ctx)
}
