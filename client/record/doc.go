// Package record encodes and decodes Kafka record batches of message format v2 (magic 2), their
// CRC32C and the four compression codecs. It is pure: no network, no clock, no goroutines.
//
// A message is what a user sends, a record its encoded form, a batch the records of one
// partition in one request. The layout of a batch is that of the Kafka protocol guide
// ("Record Batch", since Kafka 0.11, KIP-98); all integers are big-endian:
//
//	 0  base offset             int64
//	 8  length                  int32   bytes after this field
//	12  partition leader epoch  int32   -1 from a producer
//	16  magic                   int8    2
//	17  CRC32C                  uint32  of everything after this field
//	21  attributes              int16   codec (3 bits), LogAppendTime, transactional, control, …
//	23  last offset delta       int32
//	27  base timestamp          int64   ms; records hold differences to it
//	35  max timestamp           int64   ms
//	43  producer id             int64   -1 without idempotence
//	51  producer epoch          int16
//	53  base sequence           int32
//	57  record count            int32
//	61  records, compressed as one block when a codec is set
//
// A record is a sequence of zigzag varints and bytes: length, attributes (one byte, unused),
// timestamp delta, offset delta, key length (-1 is null), key, value length (-1 is null),
// value, header count, and for each header key length, key, value length (-1 is null), value.
//
// # Writing
//
// [Builder] encodes records as they are appended and [Builder.Finish] turns them into a batch.
//
// # Reading
//
// [Next] takes batches one by one from the records of a Fetch response, [Batch.Decompressed]
// gives a batch's records section, [ReadRecord] takes records from it one by one, without
// copying: keys, values and headers alias the section. Whatever was read comes from a network
// peer and is not trusted: every length and count is checked against the bytes that are there
// before anything is allocated, and decompression obeys a limit.
//
// # Who owns which buffer
//
// Nothing here copies what it need not, so lifetimes matter to a caller that pools buffers:
//
//   - The buffer given to [Builder.Reset] belongs to the builder until the next Reset.
//   - A finished batch aliases either the builder's buffer or, when [Builder.Compressed] says
//     true, the compressor's output buffer. The first is valid until the builder's next Append
//     or Reset; the second until the compressor is used again or handed back to its pool.
//     [Compressor.SetBuffer] takes the batch's buffer out of the compressor, so that the batch
//     may outlive the compressor's next use.
//   - A [Batch], its [Record] values, keys, values and headers alias the fetched buffer (codec
//     none) or the dst of [Batch.Decompressed], and are valid as long as those.
package record
