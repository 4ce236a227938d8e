package client

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// quietBed is a reader whose broker is in a long poll: what it reads is what a test queues.
func quietBed(t *testing.T) (*readerBed, *Reader) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxWait = 20 * time.Second })
	r := b.reader(ReaderConfig{})
	require.NoError(t, b.cluster.AwaitRequests(b.ctx, fetch.Key, 1))
	return b, r
}

// lay queues an answer, and returns the memory it is in.
func (r *Reader) lay(raw []byte, from int64) *buffer {
	e := fetch.Measure(raw, from)
	held := r.answers.get(len(raw))
	records := held.b[:copy(held.b, raw)]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.push(block{p: r.parts[0], version: r.parts[0].Version, buf: held, from: from, records: records, batches: e.Batches})
	r.batches += e.Batches
	return held
}

// TestBothWaysOfReadingInTurn reads one message by FetchMessage and some by FetchBatch, in turn:
// nothing is left out or comes twice, and what FetchMessage gave outlives the reader's buffers.
func TestBothWaysOfReadingInTurn(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.LZ4} {
		for _, tc := range []struct {
			about string
			size  func(i int) int
		}{
			{"many in one copy, with an empty value now and then", func(i int) int { return i % 300 }},
			{"hundreds of copies", func(i int) int { return 5000 + i%10*1000 }},
			{"some larger than what is copied at a time", func(i int) int { return i % 70 / 69 * 100_000 }},
		} {
			t.Run(fmt.Sprintf("%s, %v", tc.about, codec), func(t *testing.T) {
				b, r := quietBed(t)
				msgs := values(0, 1000)
				for i := range msgs {
					msgs[i].value = bytes.Repeat([]byte{byte(i)}, tc.size(i))
					msgs[i].headers = []Header{{Key: "number", Value: fmt.Append(nil, i)}}
				}
				msgs[10].key, msgs[11].headers = []byte("key"), nil
				held := []*buffer{
					r.lay(batchOf(t, shape{codec: codec}, msgs[:600]), 0),
					r.lay(batchOf(t, shape{codec: codec, base: 600}, msgs[600:]), 600),
				}
				same := func(m *Message) {
					want := msgs[m.Offset]
					require.Equal(t, want.key, m.Key)
					require.True(t, bytes.Equal(want.value, m.Value), m.Offset)
					require.Len(t, m.Headers, len(want.headers))
					if len(m.Headers) > 0 {
						require.Equal(t, want.headers[0], m.Headers[0])
					}
				}
				var owned []Message
				lent := make([]Message, 7)
				for next := int64(0); next < 1000; {
					m, err := r.FetchMessage(b.ctx)
					require.NoError(t, err)
					require.Equal(t, next, m.Offset)
					owned = append(owned, m)
					next++
					n, err := r.FetchBatch(b.ctx, lent[:1+len(owned)%7])
					require.NoError(t, err)
					for i := range lent[:n] {
						require.Equal(t, next, lent[i].Offset)
						same(&lent[i])
						next++
					}
				}
				for _, h := range append(held, r.cur.buf) {
					if h != nil {
						clear(h.b[:cap(h.b)])
					}
				}
				for i := range owned {
					same(&owned[i])
				}
			})
		}
	}
}

// What stands before a damaged record is delivered one by one, then comes the damage.
func TestFetchMessageComesToTheDamage(t *testing.T) {
	b, r := quietBed(t)
	raw := batchOf(t, shape{}, values(0, 3))
	at := bytes.LastIndex(raw, []byte("value 2"))
	raw[at-1] = 0x7f // the length of the value: beyond the record
	r.lay(seal(raw), 0)
	for i := range int64(2) {
		m, err := r.FetchMessage(b.ctx)
		require.NoError(t, err)
		require.Equal(t, i, m.Offset)
	}
	_, err := r.FetchMessage(b.ctx)
	var damage *record.CorruptError
	require.True(t, errors.As(err, &damage), "%v", err)
	_, err = r.FetchMessage(b.ctx)
	require.True(t, errors.As(err, &damage), "it stays: %v", err)
}
