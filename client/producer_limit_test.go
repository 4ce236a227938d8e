package client

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/client/record"
)

// send hands values over to partition 0, waits, and returns their errors by value's first letter.
func (b *fakeBroker) send(t *testing.T, p *AsyncProducer, start time.Time, msgs ...*ProducerMessage) *heard {
	out := newHeard(start)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err := p.ProduceRun(ctx, msgs, out)
	require.NoError(t, err)
	require.NoError(t, p.Flush(ctx))
	return out
}

func TestMaxMessageBytes(t *testing.T) {
	require.Equal(t, 1_000_000, NewConfig().Producer.MaxMessageBytes)
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.MaxMessageBytes = 500
		p := b.producer(t, cfg)
		fits := to(0, strings.Repeat("f", 500-batchSize(to(0, ""))-2)) // its length fields take two bytes more
		require.Equal(t, 500, batchSize(fits))
		large := to(0, string(fits.Value)+"f")
		headers := &ProducerMessage{Topic: "t", Value: []byte("h"), Headers: []Header{{Key: "k", Value: make([]byte, 500)}}}
		key := &ProducerMessage{Topic: "t", Value: []byte("k"), Key: make([]byte, 500)}
		out := b.send(t, p, start, to(0, "a"), large, fits, headers, key, to(0, "b"))
		for _, m := range []*ProducerMessage{large, headers, key} {
			_, err := out.of(string(m.Value))
			var tooLarge *MessageTooLargeError
			require.ErrorAs(t, err, &tooLarge)
			require.Equal(t, MessageTooLargeError{Size: batchSize(m), Limit: 500, Whose: "producer.maxMessageBytes"}, *tooLarge)
			require.EqualError(t, err, fmt.Sprintf("message of %d bytes is larger than producer.maxMessageBytes (500 bytes)", batchSize(m)))
		}
		require.Equal(t, []string{"a", string(fits.Value), "b"}, b.log[0], "the others arrive, in order")
	})
}

// P25: a batch that a broker refuses for its size is split until only the message fails that is too
// large alone, by an error that names both sizes. The topic's limit is asked for once; from then on
// nothing is sent that would be refused.
func TestP25TheTopicsLimitIsLearned(t *testing.T) {
	for _, tc := range []struct {
		name       string
		idempotent bool
		codec      record.Codec
		tells      bool
	}{
		{"the broker tells its limit", false, record.None, true},
		{"idempotent", true, record.None, true},
		{"compressed", false, record.Gzip, true},
		{"compressed and idempotent", true, record.Gzip, true},
		{"the broker does not tell", false, record.None, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBroker{partitions: 1, limit: 400, silent: !tc.tells}
			onPipes(t, b, func(t *testing.T, start time.Time) {
				cfg := b.config()
				cfg.Producer.Idempotent, cfg.Producer.Compression = tc.idempotent, tc.codec
				cfg.Net.MaxOpenRequests = 1 // for the order: this broker does not look at sequences
				p := b.producer(t, cfg)
				noise := func(seed, n int) string { return string(noise(seed, n)) }
				var msgs []*ProducerMessage
				var want []string
				for i := range 20 {
					n := 100
					if i == 10 {
						n = 600
					}
					m := to(0, string(rune('a'+i))+noise(i, n))
					msgs = append(msgs, m)
					if i != 10 {
						want = append(want, string(m.Value))
					}
				}
				out := b.send(t, p, start, msgs...)
				require.Equal(t, want, b.log[0], "only the one that is too large failed; order is kept")
				ok, bad := out.count()
				require.Equal(t, []int{19, 1}, []int{ok, bad})
				_, err := out.of(string(msgs[10].Value))
				var tooLarge *MessageTooLargeError
				require.ErrorAs(t, err, &tooLarge)
				require.ErrorIs(t, err, wire.ErrMessageTooLarge)
				require.Greater(t, tooLarge.Size, 600)
				if tc.tells {
					require.Equal(t, 400, tooLarge.Limit)
					require.Equal(t, "max.message.bytes of the topic", tooLarge.Whose)
				} else {
					require.Zero(t, tooLarge.Limit)
				}
				require.Equal(t, 1, b.came(32), "DescribeConfigs, once")
				if !tc.tells {
					return
				}
				before := len(b.batches())
				out = b.send(t, p, start, msgs...)
				_, err = out.of(string(msgs[10].Value))
				require.ErrorAs(t, err, &tooLarge)
				require.Equal(t, 400, tooLarge.Limit)
				for _, a := range b.batches()[before:] {
					require.LessOrEqual(t, a.bytes, 400, "nothing is sent that would be refused")
				}
				require.Equal(t, append(want, want...), b.log[0])
				sent, alone := len(b.batches()), make(chan error, 1)
				require.NoError(t, p.Produce(context.Background(), msgs[10], func(_ *ProducerMessage, err error) { alone <- err }))
				require.ErrorAs(t, <-alone, &tooLarge)
				require.Equal(t, sent, len(b.batches()), "nor is it when it is handed over by itself")
				time.Sleep(limitAge + time.Second)
				b.set(func() { b.limit = 100_000 })
				out = b.send(t, p, start, msgs[10])
				_, err = out.of(string(msgs[10].Value))
				require.NoError(t, err, "a limit that was raised is noticed after a minute")
			})
		})
	}
}

// noise is bytes that no codec makes smaller.
func noise(seed, n int) []byte {
	out := make([]byte, n)
	x := uint64(seed)*2654435761 + 88172645463325252
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x >> 32)
	}
	return out
}

// P26: with producer.checkCompressedSize a message counts as what compression makes of it.
func TestP26TheSizeMayBeCheckedAfterCompression(t *testing.T) {
	const mb = 1 << 20
	for _, tc := range []struct {
		name  string
		after bool
		value []byte
		fails string
	}{
		{"10 MB of zeros are too large before compression", false, make([]byte, 10*mb), "larger than producer.maxMessageBytes (1000000 bytes)"},
		{"and fit after it", true, make([]byte, 10*mb), ""},
		{"2 MB of noise do not", true, noise(1, 2*mb), "larger than producer.maxMessageBytes, compressed (1000000 bytes)"},
	} {
		for _, idempotent := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				b := &fakeBroker{partitions: 1}
				onPipes(t, b, func(t *testing.T, start time.Time) {
					cfg := b.config()
					cfg.Producer.Compression, cfg.Producer.CheckCompressedSize = record.LZ4, tc.after
					cfg.Producer.MaxRequestBytes = 4 * mb // smaller than the message before compression
					cfg.Producer.Idempotent = idempotent
					p := b.producer(t, cfg)
					m := &ProducerMessage{Topic: "t", Value: tc.value}
					out := b.send(t, p, start, to(0, "a"), m, to(0, "b"))
					_, err := out.of(string(tc.value))
					want := []string{"a", string(tc.value), "b"}
					if tc.fails != "" {
						require.ErrorContains(t, err, tc.fails)
						var large *MessageTooLargeError
						require.ErrorAs(t, err, &large)
						want = []string{"a", "b"}
					} else {
						require.NoError(t, err)
					}
					require.Len(t, b.log[0], len(want))
					for i := range want {
						require.True(t, bytes.Equal([]byte(want[i]), []byte(b.log[0][i])))
					}
					next := int32(0)
					for _, a := range b.batches() {
						if idempotent {
							require.Equal(t, next, a.sequence, "a number that was not used is given to the next batch")
						}
						next += int32(len(a.values))
					}
				})
			})
		}
	}
	cfg := NewConfig()
	cfg.Producer.CheckCompressedSize = true
	require.ErrorContains(t, cfg.Validate(), "producer.checkCompressedSize: needs producer.compression")
}
