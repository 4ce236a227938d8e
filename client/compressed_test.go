package client

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/record"
	"github.com/kbench/kbench/workloads/broker"
)

// A batch that was compressed is still known by its messages: requests are described in full, a
// batch too large is split, and sequences have no gap.
func TestCompressedBatchesKeepTheirCount(t *testing.T) {
	for _, codec := range record.Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			k, err := broker.Start(broker.Options{})
			require.NoError(t, err)
			t.Cleanup(k.Close)
			require.NoError(t, k.CreateTopic("t", 1, map[string]string{"max.message.bytes": "2000"}))
			var mu sync.Mutex
			messages, requests := 0, 0
			cfg := quickConfig()
			cfg.Producer.Compression, cfg.Producer.Idempotent = codec, true
			cfg.Producer.OnRequest = func(i RequestInfo) {
				mu.Lock()
				defer mu.Unlock()
				messages, requests = messages+i.Messages, requests+1
			}
			p := asyncProducer(t, k, cfg)
			const n = 200
			run := make([]*ProducerMessage, n)
			for i := range run {
				random := make([]byte, 40)
				_, _ = rand.Read(random)
				run[i] = &ProducerMessage{Topic: "t", Value: []byte(hex.EncodeToString(random))} // half of it is noise
			}
			var out tally
			_, err = p.ProduceRun(within(t), run, &out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(within(t)))
			out.require(t, n, 0)
			_, values := logOf(t, k, 0)
			require.Len(t, values, n)
			for i, v := range values {
				require.Equal(t, string(run[i].Value), v, "in order, once each")
			}
			mu.Lock()
			defer mu.Unlock()
			require.Greater(t, requests, 2, "it was split")
			require.GreaterOrEqual(t, messages, n)
			require.EqualValues(t, messages, p.Metrics().Overall.RecordsPerRequest.Sum)
		})
	}
}
