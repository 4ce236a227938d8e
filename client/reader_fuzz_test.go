package client

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// FuzzReaderRecords feeds a reader whatever a broker may send as a partition's records: no panic,
// offsets rise, the position never goes back, and damage is an error of a known kind.
func FuzzReaderRecords(f *testing.F) {
	for _, codec := range record.Codecs() {
		f.Add(batchOf(f, shape{base: 5, codec: codec}, values(0, 20)), true)
	}
	f.Add(append(emptied(0, 9), batchOf(f, shape{base: 10, lastDelta: 30}, values(0, 3))...), true)
	f.Add(append(inTxn(f, 1, 8, values(1, 3)), marker(f, 3, 8, record.Abort)...), true)
	b := newReaderBed(f, broker.Options{}, 1, func(c *Config) {
		c.Consumer.MaxWait = 20 * time.Second
		c.Consumer.MaxDecompressed = 1 << 20
		c.Consumer.CheckCRC = false // or hardly anything would get further
	})
	f.Fuzz(func(t *testing.T, raw []byte, aborted bool) {
		r, err := b.client.NewReader(ReaderConfig{Topic: "in"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		feed(r, raw, aborted)
		buf := make([]Message, 7)
		next := int64(0)
		for {
			n, err := r.FetchBatch(b.ctx, buf)
			if err != nil {
				return
			}
			for _, m := range buf[:n] {
				if m.Offset < next {
					t.Fatalf("offset %d after %d", m.Offset, next)
				}
				next = m.Offset + 1
			}
			if at := r.Offset(); at < next {
				t.Fatalf("position %d behind %d", at, next)
			}
		}
	})
}

// FuzzReaderAnswer feeds a source whatever a broker may send as the answer to a Fetch of two
// partitions: no panic, memory within a bound, offsets rise, and reading goes on or ends with an
// error.
func FuzzReaderAnswer(f *testing.F) {
	for version := int16(4); version <= wire.Versions[fetch.Key].Max; version++ {
		f.Add(bodyOf(rawserver.Request{Version: version}, batchOf(f, shape{base: 5}, values(0, 20))), version, true)
	}
	f.Add(divergingBody(), int16(12), true)
	b := newReaderBed(f, broker.Options{}, 2, func(c *Config) {
		c.Consumer.MaxWait = 20 * time.Second
		c.Consumer.MaxDecompressed = 1 << 20
		c.Consumer.CheckCRC = false
		c.Consumer.OutOfRange = "earliest"
	})
	f.Fuzz(func(t *testing.T, body []byte, version int16, committed bool) {
		const versions = 15 // 4 to 18
		version = 4 + (version%versions+versions)%versions
		r, err := b.client.NewReader(ReaderConfig{Topic: "in", Partitions: []int32{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.answerTo(body, version, committed)
		next := map[int32]int64{}
		buf := make([]Message, 7)
		var last error
		for {
			n, err := r.FetchBatch(b.ctx, buf)
			if errors.Is(err, io.EOF) || err != nil && err == last { //nolint:errorlint // the very one again: nothing is left to read
				break
			}
			last = err
			for _, m := range buf[:n] {
				if m.Offset < next[m.Partition] {
					t.Fatalf("offset %d after %d", m.Offset, next[m.Partition])
				}
				next[m.Partition] = m.Offset + 1
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(1000*len(body)+16<<20) {
			t.Fatalf("%d bytes of memory for %d bytes", took, len(body))
		}
	})
}

func divergingBody() []byte {
	p := kmsg.NewFetchResponseTopicPartition()
	p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 1, 0
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.Partitions = "in", append(topic.Partitions, p)
	resp := kmsg.NewPtrFetchResponse()
	resp.Topics = append(resp.Topics, topic)
	resp.SetVersion(12)
	return resp.AppendTo(nil)
}

// answerTo makes the reader take body for the answer to its Fetch, as the last thing that happens.
func (r *Reader) answerTo(body []byte, version int16, committed bool) {
	r.mu.Lock()
	s := newSource(r, r.client.Brokers()[0])
	for _, p := range r.parts {
		p.leave()
		p.MoveTo(0)
		if p.topicID = scriptTopicID; version < fetch.FirstByID {
			p.topicID = [16]byte{}
		}
		if committed {
			p.lastEpoch = 3
		}
		s.add(p)
	}
	s.call.Version = s.session.Next(&s.req, version)
	r.mu.Unlock()
	s.buf = r.answers.get(len(body))
	if s.resp.Decode(s.buf.b[:copy(s.buf.b, body)], s.call.Version) == nil {
		s.takeIn(time.Now())
	}
	s.buf.release()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parts {
		p.leave()
		if !p.stopped {
			p.stopped = true
			r.moving--
		}
	}
	r.lastErr = io.EOF
	signal(r.ready)
}

// FuzzEpochs takes whatever a broker may answer to OffsetForLeaderEpoch: no panic, memory within a
// bound, and a position moves back only, to an offset that there can be.
func FuzzEpochs(f *testing.F) {
	for version := int16(firstEpochs); version <= 4; version++ {
		resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = "in"
		for i := range int32(3) {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition, p.ErrorCode, p.LeaderEpoch, p.EndOffset = i, int16(i%2*75), 3-i, int64(40*i)-1
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
		resp.SetVersion(version)
		f.Add(resp.AppendTo(nil), version)
	}
	b := newReaderBed(f, broker.Options{}, 2, func(c *Config) { c.Consumer.MaxWait, c.Consumer.OutOfRange = 20*time.Second, "earliest" })
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		version = firstEpochs + (version%2+2)%2
		resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
		resp.SetVersion(version)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := resp.ReadFrom(body)
		asks := []*epochAnswer{{tp: topicPartition{"in", 0}, last: 3, err: errLeftOut}, {tp: topicPartition{"in", 1}, last: 3, err: errLeftOut}}
		if err == nil {
			takeEpochs(asks, resp)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(128*len(body)+64<<10) {
			t.Fatalf("%d bytes of memory for %d bytes", took, len(body))
		}
		if err != nil {
			return
		}
		r, err := b.client.NewReader(ReaderConfig{Topic: "in", Partitions: []int32{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		s := newSource(r, r.client.Brokers()[0])
		for i, p := range r.parts {
			p.leave()
			p.MoveTo(30)
			p.lastEpoch, p.Need = 3, fetch.CheckEpoch
			s.add(p)
			s.checkedLocked(p, asks[i], time.Now())
			if p.Next < 0 || p.Next > 30 {
				t.Fatalf("position %d", p.Next)
			}
		}
	})
}

// feed queues records as if they had been the last ones fetched.
func feed(r *Reader, raw []byte, aborted bool) {
	held := r.answers.get(len(raw))
	records := held.b[:copy(held.b, raw)]
	e := fetch.Measure(records, 0)
	if e.Err == nil {
		records = records[:e.Bytes]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parts[0]
	p.leave()
	p.Version++
	bl := block{p: p, version: p.Version, buf: held, records: records, batches: e.Batches}
	if aborted {
		bl.aborted = []fetch.Aborted{{ProducerID: 8, FirstOffset: 1}}
	}
	r.queue.push(bl)
	r.batches += e.Batches
	p.stopped, r.lastErr = true, io.EOF // behind it all, instead of waiting for more
	r.moving--
	signal(r.ready)
}
