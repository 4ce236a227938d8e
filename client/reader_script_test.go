package client

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// script is a scripted broker, node 0, which leads the one partition of topic "in".
type script struct {
	first, last int64 // what ListOffsets answers
	// fetch answers a Fetch of the partition: by filling in p, or by another reply.
	fetch func(req rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply
	whole func(*kmsg.FetchResponse)    // has the last word on an answer
	more  func(*kmsg.MetadataResponse) // has the last word on metadata
	// epochs answers OffsetForLeaderEpoch about the partition.
	epochs func(ask kmsg.OffsetForLeaderEpochRequestTopicPartition, p *kmsg.OffsetForLeaderEpochResponseTopicPartition)

	versions map[int16]wire.Range // nil: the client's own

	mu      sync.Mutex
	fetches []kmsg.FetchRequest
	held    kmsg.FetchRequestTopic // what was asked for last, as a session has it
	lists   int
}

func (s *script) asked() []kmsg.FetchRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]kmsg.FetchRequest(nil), s.fetches...)
}

// forget drops what was asked so far.
func (s *script) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches = nil
}

// start runs the script and a reader of it.
func (s *script) start(t testing.TB, cfg ReaderConfig, change func(*Config)) (*Reader, context.Context) {
	var srv *rawserver.Server
	ready := make(chan struct{})
	var err error
	srv, err = rawserver.Start(rawserver.Script{Versions: s.versions, Handle: func(req rawserver.Request) rawserver.Reply {
		<-ready
		return s.handle(srv.Addr(), req)
	}})
	require.NoError(t, err)
	close(ready)
	t.Cleanup(srv.Close)
	config := NewConfig()
	config.Consumer.MaxWait = 10 * time.Millisecond
	config.Consumer.ReadBackoffMin, config.Consumer.ReadBackoffMax = time.Millisecond, 5*time.Millisecond
	config.Metadata.Retry = RetryConfig{Max: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}
	if change != nil {
		change(config)
	}
	cfg.Topic, cfg.Brokers, cfg.Config = "in", []string{srv.Addr()}, config
	r, err := NewReader(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return r, ctx
}

func (s *script) handle(addr string, raw rawserver.Request) rawserver.Reply {
	switch req := raw.Decode().(type) {
	case *kmsg.MetadataRequest:
		resp := metadataOf(addr)
		if s.more != nil {
			s.more(resp)
		}
		return rawserver.Respond(raw, resp)
	case *kmsg.ListOffsetsRequest:
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = s.last
		if req.Topics[0].Partitions[0].Timestamp == OffsetOldest {
			p.Offset = s.first
		}
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = "in", append(topic.Partitions, p)
		resp := kmsg.NewPtrListOffsetsResponse()
		resp.Topics = append(resp.Topics, topic)
		return rawserver.Respond(raw, resp)
	case *kmsg.OffsetForLeaderEpochRequest:
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		ask := req.Topics[0].Partitions[0]
		p.LeaderEpoch, p.EndOffset = ask.LeaderEpoch, s.last
		if s.epochs != nil {
			s.epochs(ask, &p)
		}
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic, topic.Partitions = "in", append(topic.Partitions, p)
		resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
		resp.Topics = append(resp.Topics, topic)
		return rawserver.Respond(raw, resp)
	case *kmsg.FetchRequest:
		s.mu.Lock()
		s.fetches = append(s.fetches, *req)
		if len(req.Topics) > 0 {
			s.held = req.Topics[0]
		}
		held := s.held
		s.mu.Unlock()
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset, p.RecordBatches = s.last, s.last, []byte{}
		if reply := s.fetch(raw, held.Partitions[0], &p); reply != nil {
			return *reply
		}
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID, topic.Partitions = "in", held.TopicID, append(topic.Partitions, p)
		resp := kmsg.NewPtrFetchResponse()
		resp.Topics = append(resp.Topics, topic)
		if s.whole != nil {
			s.whole(resp)
		}
		reply := rawserver.Respond(raw, resp)
		if len(p.RecordBatches) == 0 && p.ErrorCode == 0 {
			reply.Delay = time.Duration(req.MaxWaitMillis) * time.Millisecond
		}
		return reply
	}
	return rawserver.Reply{Close: true}
}

func metadataOf(addr string) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.Brokers = append(resp.Brokers, brokerAt(0, addr))
	p := kmsg.NewMetadataResponseTopicPartition()
	p.LeaderEpoch = 4
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.Partitions = kmsg.StringPtr("in"), append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func brokerAt(id int32, addr string) kmsg.MetadataResponseBroker {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = id, host, int32(n)
	return b
}

// shape are the parts of a batch header that brokers and compaction set.
type shape struct {
	base      int64
	lastDelta int32 // 0: as encoded
	a         record.Attributes
	codec     record.Codec
}

// batchOf is a batch as a log has it.
func batchOf(t testing.TB, s shape, msgs []msg) []byte {
	if s.a == (record.Attributes{}) {
		s.a = record.NoProducer
		s.a.PartitionLeaderEpoch = 3
	}
	raw := encode(t, s.codec, s.a, msgs)
	if s.lastDelta != 0 {
		binary.BigEndian.PutUint32(raw[23:], uint32(s.lastDelta))
	}
	binary.BigEndian.PutUint64(raw, uint64(s.base))
	return seal(raw)
}

// emptied is what compaction leaves of a batch without records.
func emptied(base int64, lastDelta int32) []byte {
	raw := make([]byte, record.HeaderSize)
	binary.BigEndian.PutUint64(raw, uint64(base))
	binary.BigEndian.PutUint32(raw[8:], record.HeaderSize-12)
	raw[16] = 2
	binary.BigEndian.PutUint32(raw[23:], uint32(lastDelta))
	binary.BigEndian.PutUint64(raw[43:], 1<<64-1)
	return seal(raw)
}

// marker is a control batch that ends a transaction.
func marker(t testing.TB, base, producer int64, c record.Control) []byte {
	a := record.Attributes{ProducerID: producer, Transactional: true, Control: true, BaseSequence: -1, PartitionLeaderEpoch: 3}
	return batchOf(t, shape{base: base, a: a}, []msg{{key: []byte{0, 0, 0, byte(c)}, value: []byte{0, 0, 0, 0, 0, 0}}})
}

// inTxn is a batch of an open transaction's messages.
func inTxn(t testing.TB, base, producer int64, msgs []msg) []byte {
	a := record.Attributes{ProducerID: producer, Transactional: true, PartitionLeaderEpoch: 3}
	return batchOf(t, shape{base: base, a: a}, msgs)
}

func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[17:], record.CRC32C(raw[21:]))
	return raw
}

// logFrom is what a broker answers from a list of batches: those that end at or after offset, as
// they are.
func logFrom(batches [][]byte, offset int64) (out []byte) {
	for _, raw := range batches {
		b, _, err := record.Next(raw)
		if err == nil && b.NextOffset() > offset {
			out = append(out, raw...)
		}
	}
	return out
}

// serve is a script whose log does not change.
func serve(batches ...[]byte) *script {
	last, _, _ := record.Next(batches[len(batches)-1])
	s := &script{last: last.NextOffset()}
	s.fetch = func(_ rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		p.RecordBatches = append(p.RecordBatches, logFrom(batches, ask.FetchOffset)...)
		return nil
	}
	return s
}

// offsets reads n messages and gives their offsets.
func offsets(t testing.TB, ctx context.Context, r *Reader, n int) (out []int64) {
	for range n {
		m, err := r.FetchMessage(ctx)
		require.NoError(t, err)
		out = append(out, m.Offset)
	}
	return out
}
