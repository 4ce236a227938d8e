package broker

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/workloads/payload"
)

const (
	// syntheticBytes bounds the batch that a discarding broker serves, header included: what
	// consumers commonly ask for of one partition, so that it is nobody's oversize batch.
	syntheticBytes = 1 << 20
	// syntheticProducer is whom the stamps name: no producer that a run has.
	syntheticProducer = math.MaxUint32
	// syntheticTime is the time of all messages: fixed, so that the bytes are always the same.
	syntheticTime = 1_600_000_000_000
	batchHeader   = 61 // bytes of a batch before its first record
	recordFrame   = 20 // bytes that a record has beside its value, at most
	valueBytes    = 100
)

// syntheticBatch is a batch of as many messages of n bytes (0: 100) as fit, at least one. They are
// stamped where a stamp fits, so that a run that meets them counts messages of someone else, and
// not damaged ones of its own.
func syntheticBatch(n int) []byte {
	if n == 0 {
		n = valueBytes
	}
	var records []byte
	count := int32(0)
	for count == 0 || batchHeader+len(records)+recordFrame+n <= syntheticBytes {
		r := kmsg.Record{OffsetDelta: count, Value: syntheticValue(n, int64(count))}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // of what follows the length, now one byte
		records = r.AppendTo(records)
		count++
	}
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: count - 1,
		FirstTimestamp: syntheticTime, MaxTimestamp: syntheticTime,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: count, Records: records,
	}
	return seal(b.AppendTo(nil))
}

// seal fills in length and checksum of a batch; their places: KIP-98.
func seal(batch []byte) []byte {
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

func syntheticValue(n int, number int64) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = 'a' + byte((int64(i)+number)%26)
	}
	if n >= payload.StampSize {
		payload.PutStamp(v, payload.Stamp{Producer: syntheticProducer, Number: number}, nil, v[payload.StampSize:])
	}
	return v
}
