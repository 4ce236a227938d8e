package broker

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// raw is one protocol connection by hand.
type raw struct {
	t    *testing.T
	conn net.Conn
	corr int32
}

func dial(t *testing.T, address string) *raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(60*time.Second)))
	return &raw{t: t, conn: conn}
}

// send writes a request and returns at once.
func (r *raw) send(request kmsg.Request) {
	r.t.Helper()
	r.corr++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, request, r.corr)
	_, err := r.conn.Write(frame)
	require.NoError(r.t, err)
}

// receive reads the answer to the request sent last but n.
func (r *raw) receive(request kmsg.Request, ago int32) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.conn, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r.conn, body); err != nil {
		return nil, err
	}
	require.Equal(r.t, uint32(r.corr-ago), binary.BigEndian.Uint32(body), "correlation id")
	body = body[4:]
	response := request.ResponseKind()
	if response.IsFlexible() && response.Key() != int16(kmsg.ApiVersions) {
		body = body[1:]
	}
	return response, response.ReadFrom(body)
}

func (r *raw) ask(request kmsg.Request) (kmsg.Response, error) {
	r.t.Helper()
	r.send(request)
	return r.receive(request, 0)
}

// metadata asks which topics and brokers there are.
func (r *raw) metadata(topics ...string) *kmsg.MetadataResponse {
	r.t.Helper()
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(9)
	request.AllowAutoTopicCreation = true
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	response, err := r.ask(request)
	require.NoError(r.t, err)
	return response.(*kmsg.MetadataResponse)
}

// produceRequest carries one record with a value of that size.
func produceRequest(topic string, partition int32, size int) *kmsg.ProduceRequest {
	record := kmsg.Record{Value: make([]byte, size)}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: 1, Records: lengthened(&record),
	}
	bytes := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(bytes[8:], uint32(len(bytes)-12))
	binary.BigEndian.PutUint32(bytes[17:], crc32.Checksum(bytes[21:], crc32.MakeTable(crc32.Castagnoli)))

	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(9)
	request.Acks = -1
	request.TimeoutMillis = 1000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, bytes
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	request.Topics = append(request.Topics, rt)
	return request
}

// lengthened is the record with its length, a varint, in front of the rest.
func lengthened(r *kmsg.Record) []byte {
	length := int32(len(r.AppendTo(nil)))
	for {
		r.Length = length
		if whole := r.AppendTo(nil); int32(len(whole))-int32(varintLen(length)) == length {
			return whole
		}
		length--
	}
}

func varintLen(n int32) int { return len(binary.AppendVarint(nil, int64(n))) }

func (r *raw) produce(topic string, partition int32, size int) (code int16, err error) {
	r.t.Helper()
	response, err := r.ask(produceRequest(topic, partition, size))
	if err != nil {
		return 0, err
	}
	return produceCode(response), nil
}

func produceCode(r kmsg.Response) int16 {
	return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
}

func TestFramerFindsRequestsHoweverTheStreamIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []exchange
		for i := range rapid.IntRange(0, 8).Draw(t, "frames") {
			x := exchange{key: rapid.Int16().Draw(t, "key"), version: rapid.Int16().Draw(t, "version"), corr: int32(i)}
			rest := rapid.IntRange(0, 40).Draw(t, "rest")
			frame := binary.BigEndian.AppendUint32(nil, uint32(8+rest))
			frame = binary.BigEndian.AppendUint16(frame, uint16(x.key))
			frame = binary.BigEndian.AppendUint16(frame, uint16(x.version))
			frame = binary.BigEndian.AppendUint32(frame, uint32(x.corr))
			stream = append(stream, append(frame, make([]byte, rest)...)...)
			want = append(want, x)
		}
		var got []exchange
		var f framer
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			f.feed(stream[:n], func(x exchange) { got = append(got, x) })
			stream = stream[n:]
		}
		require.Equal(t, want, got)
	})
}
