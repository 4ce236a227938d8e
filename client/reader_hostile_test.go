package client

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// bodyOf is a well-formed answer with records, to be damaged.
func bodyOf(req rawserver.Request, records []byte) []byte {
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.RecordBatches = 1000, records
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "in", scriptTopicID, append(topic.Partitions, p)
	resp := kmsg.NewPtrFetchResponse()
	resp.Topics = append(resp.Topics, topic)
	resp.SetVersion(req.Version)
	return resp.AppendTo(nil)
}

// scriptTopicID is the id of topic "in" where a script says it.
var scriptTopicID = [16]byte{1, 15: 9}

// nameTopics makes a script say the id of its topic, so that requests name it by that.
func (s *script) nameTopics() {
	s.more = func(m *kmsg.MetadataResponse) { m.Topics[0].TopicID = scriptTopicID }
}

// speaks makes a script offer Fetch to a version.
func (s *script) speaks(version int16) {
	s.versions = map[int16]wire.Range{}
	for key, versions := range wire.Versions {
		s.versions[key] = versions
	}
	s.versions[fetch.Key] = wire.Range{Min: 4, Max: version}
}

// hostileRow is an answer to Fetch that is broken, and what must come of it.
type hostileRow struct {
	what  string
	reply func(req rawserver.Request) rawserver.Reply
	check func(t *testing.T, err error)
}

func is(target error) func(*testing.T, error) {
	return func(t *testing.T, err error) { require.ErrorIs(t, err, target) }
}

func as[T error](t *testing.T, err error) {
	var target T
	require.ErrorAs(t, err, &target)
}

func whole(body func(req rawserver.Request) []byte) func(rawserver.Request) rawserver.Reply {
	return func(req rawserver.Request) rawserver.Reply { return rawserver.Reply{Body: body(req)} }
}

func withRecords(records []byte) func(rawserver.Request) rawserver.Reply {
	return whole(func(req rawserver.Request) []byte { return bodyOf(req, records) })
}

func hostileAnswers(t *testing.T) []hostileRow {
	good := batchOf(t, shape{}, values(0, 3))
	damaged := func(change func(raw []byte)) []byte {
		raw := bytes.Clone(good)
		change(raw)
		return raw
	}
	return []hostileRow{
		{"an answer cut short", whole(func(req rawserver.Request) []byte { b := bodyOf(req, good); return b[:len(b)-20] }), func(t *testing.T, err error) {
			require.True(t, errors.Is(err, wire.ErrTruncated) || errors.Is(err, wire.ErrLength), err)
		}},
		{"bytes after the answer", whole(func(req rawserver.Request) []byte { return append(bodyOf(req, good), 1, 2, 3) }), is(wire.ErrTrailing)},
		{"a count of two thousand million topics", whole(func(rawserver.Request) []byte {
			return []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07}
		}), is(wire.ErrLength)},
		{"an empty answer", whole(func(rawserver.Request) []byte { return []byte{} }), is(wire.ErrTruncated)},
		{"an answer without the partition", whole(func(req rawserver.Request) []byte {
			resp := kmsg.NewPtrFetchResponse()
			resp.SetVersion(req.Version)
			return resp.AppendTo(nil)
		}), is(errLeftOut)},
		{"a length of 2 GiB", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}}
		}, as[*conn.ProtocolError]},
		{"a negative length", func(rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}
		}, as[*conn.ProtocolError]},
		{"another correlation id", func(req rawserver.Request) rawserver.Reply {
			return rawserver.Reply{Raw: rawserver.FrameAs(req, req.Corr+7, bodyOf(req, good))}
		}, as[*conn.ProtocolError]},
		{"a batch with a wrong checksum", withRecords(damaged(func(raw []byte) { raw[len(raw)-1] ^= 1 })), as[*record.CRCError]},
		{"a batch of the format before Kafka 0.11", withRecords(damaged(func(raw []byte) { raw[16] = 1 })), as[*record.FormatError]},
		{"a batch of a negative length", withRecords(damaged(func(raw []byte) { binary.BigEndian.PutUint32(raw[8:], 1<<32-5) })), as[*record.CorruptError]},
		{"a count of records that the bytes cannot hold", withRecords(damaged(func(raw []byte) {
			binary.BigEndian.PutUint32(raw[57:], 1<<30)
			binary.BigEndian.PutUint32(raw[23:], 1<<30)
			seal(raw)
		})), as[*record.CorruptError]},
		{"records that do not follow the format", withRecords(damaged(func(raw []byte) { raw[61] = 0xff; seal(raw) })), as[*record.CorruptError]},
		{"an unknown codec", withRecords(damaged(func(raw []byte) { raw[22] |= 7; seal(raw) })), as[*record.CodecError]},
		{"a gzip bomb", withRecords(bomb(t)), as[*record.TooLargeError]},
		{"a gzip batch that is too large", withRecords(blown(t, record.Gzip)), as[*record.TooLargeError]},
		{"a snappy batch that is too large", withRecords(blown(t, record.Snappy)), as[*record.TooLargeError]},
		{"an lz4 batch that is too large", withRecords(blown(t, record.LZ4)), as[*record.TooLargeError]},
		{"C11: a zstd batch that is too large", withRecords(blown(t, record.ZSTD)), as[*record.TooLargeError]},
	}
}

// blown is a batch of 8 MiB of zeros, packed.
func blown(t *testing.T, codec record.Codec) []byte {
	return batchOf(t, shape{codec: codec}, []msg{{value: make([]byte, 8<<20)}})
}

// Counts and lengths below zero are possible before version 12 only.
func TestReaderHostileCounts(t *testing.T) {
	rows := []struct {
		what string
		at   int // in the answer's body, where the four bytes stand
		size uint32
		err  error
	}{
		{"a negative count of topics", 10, 1<<32 - 2, wire.ErrLength},
		{"a count of topics that the bytes cannot hold", 10, 1<<31 - 1, wire.ErrLength},
		{"a negative count of partitions", 18, 1<<32 - 7, wire.ErrLength},
		{"a negative count of aborted transactions", 52, 1<<32 - 2, wire.ErrLength},
		{"a negative size of the records", 60, 1<<32 - 2, wire.ErrLength},
		{"records larger than the answer", 60, 1 << 30, wire.ErrTruncated},
	}
	for _, row := range rows {
		s := &script{last: 1000}
		s.speaks(11)
		s.fetch = func(req rawserver.Request, _ kmsg.FetchRequestTopicPartition, _ *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
			body := bodyOf(req, batchOf(t, shape{}, values(0, 3)))
			binary.BigEndian.PutUint32(body[row.at:], row.size)
			return &rawserver.Reply{Body: body}
		}
		r, ctx := s.start(t, ReaderConfig{}, nil)
		_, err := r.FetchMessage(ctx)
		require.ErrorIs(t, err, row.err, row.what)
		require.Less(t, len(s.asked()), 10, row.what)
	}
}

// bomb is a batch that decompresses to 40 MiB of zeros.
func bomb(t *testing.T) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range 40 {
		_, err := w.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	raw := append(emptied(0, 9), packed.Bytes()...)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[57:], 10)
	raw[22] = byte(record.Gzip)
	return seal(raw)
}

func TestReaderHostileAnswers(t *testing.T) {
	rows := hostileAnswers(t)
	for _, version := range []int16{12, wire.Versions[fetch.Key].Max} {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) { hostile(t, rows, version) })
	}
}

func hostile(t *testing.T, rows []hostileRow, version int16) {
	for _, row := range rows {
		t.Run(row.what, func(t *testing.T) {
			s := &script{last: 1000}
			s.speaks(version)
			if version >= fetch.FirstByID {
				s.nameTopics()
			}
			s.fetch = func(req rawserver.Request, _ kmsg.FetchRequestTopicPartition, _ *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
				if req.Version != version {
					t.Errorf("asked by version %d", req.Version)
				}
				reply := row.reply(req)
				return &reply
			}
			r, ctx := s.start(t, ReaderConfig{}, func(c *Config) { c.Consumer.MaxDecompressed = 1 << 20 })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := r.FetchMessage(ctx)
			runtime.ReadMemStats(&after)
			var read *ReadError
			require.ErrorAs(t, err, &read)
			require.Equal(t, ReadError{"in", 0, 0, false, read.Err}, *read)
			row.check(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20), "bounded memory")
			require.Less(t, len(s.asked()), 10, "and no spin")
		})
	}
}

// A length costs a broker nothing: memory is taken as bytes come, beyond what was asked for.
func TestReaderAnnouncedLengthTakesNoMemory(t *testing.T) {
	s := &script{last: 1000}
	s.fetch = func(req rawserver.Request, _ kmsg.FetchRequestTopicPartition, _ *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		raw := rawserver.Frame(req, nil)
		binary.BigEndian.PutUint32(raw, 100<<20)
		return &rawserver.Reply{Raw: raw, Close: true}
	}
	r, ctx := s.start(t, ReaderConfig{MaxAttempts: 2}, func(c *Config) { c.Consumer.MaxBytes = 1 << 20 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.FetchMessage(ctx)
	runtime.ReadMemStats(&after)
	var read *ReadError
	require.ErrorAs(t, err, &read)
	require.True(t, read.Passing)
	require.ErrorIs(t, err, conn.ErrClosedByBroker)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20))
}

// What stands before the damage is delivered, and SetOffset leads past it.
func TestReaderDeliversWhatStandsBeforeTheDamage(t *testing.T) {
	bad := batchOf(t, shape{base: 3}, values(3, 6))
	bad[len(bad)-1] ^= 1
	old := batchOf(t, shape{base: 9}, values(9, 12))
	old[16] = 0
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)), bad, batchOf(t, shape{base: 6}, values(6, 9)))
	good := s.fetch
	s.fetch = func(raw rawserver.Request, ask kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		good(raw, ask, p)
		p.RecordBatches = append(p.RecordBatches, old...)
		return nil
	}
	r, ctx := s.start(t, ReaderConfig{}, nil)
	require.Equal(t, []int64{0, 1, 2}, offsets(t, ctx, r, 3))
	_, err := r.FetchMessage(ctx)
	as[*record.CRCError](t, err)
	require.EqualValues(t, 3, r.Offset())
	require.NoError(t, r.SetOffset(6))
	require.Equal(t, []int64{6, 7, 8}, offsets(t, ctx, r, 3))
	for range 3 {
		_, err = r.FetchMessage(ctx)
		as[*record.FormatError](t, err)
	}
}

// One damaged partition does not hold up the others.
func TestReaderGoesOnWithOtherPartitions(t *testing.T) {
	fail := wire.ErrTopicAuthorizationFailed
	s := &script{last: 1000}
	s.more = func(m *kmsg.MetadataResponse) {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition = 1
		m.Topics[0].Partitions = append(m.Topics[0].Partitions, p)
	}
	s.fetch = func(rawserver.Request, kmsg.FetchRequestTopicPartition, *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		return nil
	}
	s.whole = func(resp *kmsg.FetchResponse) {
		bad, good := kmsg.NewFetchResponseTopicPartition(), kmsg.NewFetchResponseTopicPartition()
		bad.ErrorCode = fail.Code
		good.Partition, good.RecordBatches = 1, batchOf(t, shape{base: 5}, values(5, 6))
		resp.Topics[0].Partitions = []kmsg.FetchResponseTopicPartition{bad, good}
	}
	r, ctx := s.start(t, ReaderConfig{Partitions: []int32{0, 1}, StartOffset: 5}, nil)
	_, err := r.FetchMessage(ctx)
	require.ErrorIs(t, err, fail)
	require.Equal(t, []int64{5}, offsets(t, ctx, r, 1))
}

func TestReaderTellsOfFailuresThatMayPass(t *testing.T) {
	s := &script{last: 10}
	s.fetch = func(_ rawserver.Request, _ kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		if len(s.asked()) <= 5 {
			p.ErrorCode = wire.ErrNotLeaderOrFollower.Code
		} else {
			p.RecordBatches = batchOf(t, shape{base: 0}, values(0, 3))
		}
		return nil
	}
	r, ctx := s.start(t, ReaderConfig{MaxAttempts: 3}, nil)
	_, err := r.FetchMessage(ctx)
	var read *ReadError
	require.ErrorAs(t, err, &read)
	require.True(t, read.Passing)
	require.ErrorIs(t, err, wire.ErrNotLeaderOrFollower)
	require.ErrorContains(t, err, "still trying")
	require.Equal(t, []int64{0, 1, 2}, offsets(t, ctx, r, 3))
}

func TestReaderHonoursThrottling(t *testing.T) {
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	s.whole = func(resp *kmsg.FetchResponse) {
		if len(s.asked()) == 1 {
			resp.ThrottleMillis = 300
		}
	}
	var throttles []int64
	read := make(chan FetchStats, 100) // the hook writes, the test reads
	r, ctx := s.start(t, ReaderConfig{OnFetch: func(st FetchStats) {
		if len(read) < cap(read) {
			read <- st
		}
	}}, nil)
	offsets(t, ctx, r, 3)
	first, second := <-read, <-read
	throttles = append(throttles, first.Throttle.Milliseconds(), second.Throttle.Milliseconds())
	require.Equal(t, []int64{300, 0}, throttles)
	require.GreaterOrEqual(t, second.Written.Sub(first.Read).Milliseconds(), int64(290))
}

// Every request names the leader's epoch (KIP-320), and messages carry that of their batch.
func TestReaderLeaderEpochs(t *testing.T) {
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	r, ctx := s.start(t, ReaderConfig{}, nil)
	m, err := r.FetchMessage(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, m.LeaderEpoch)
	require.EqualValues(t, 4, s.asked()[0].Topics[0].Partitions[0].CurrentLeaderEpoch)
}
