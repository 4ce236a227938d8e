//go:build kafka

package client

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// P28 on a real broker: with a quota its answers ask for a pause, which is kept before the next
// request is written (KIP-219), told and counted; the rate comes out as the quota says.
func TestKafkaP28QuotasAreObeyed(t *testing.T) {
	t.Parallel()
	const (
		quota = 1 << 20 // bytes a second
		size  = 100 << 10
		n     = 200 // about twice what the broker lets pass before it looks at the quota
	)
	var mu sync.Mutex
	var requests []RequestInfo
	id := fmt.Sprintf("kbench-test-throttled-%d", time.Now().UnixNano())
	b := newRealBed(t, kafkatest.Shared(t, 1), func(c *Config) {
		c.ClientID, c.Net.MaxOpenRequests, c.Producer.Flush.MaxMessages = id, 1, 1
		c.Producer.OnRequest = func(i RequestInfo) { mu.Lock(); requests = append(requests, i); mu.Unlock() }
	})
	entity := []string{"--bootstrap-server", strings.Join(b.Bootstrap, ","), "--alter", "--entity-type", "clients", "--entity-name", id}
	b.Script(t, append([]string{"tool", "ConfigCommand", "--add-config", fmt.Sprintf("producer_byte_rate=%d", quota)}, entity...)...)
	t.Cleanup(func() {
		b.Script(t, append([]string{"tool", "ConfigCommand", "--delete-config", "producer_byte_rate"}, entity...)...)
	})

	topic := b.topic(t, 1, nil)
	p := b.producer(t)
	start := time.Now()
	var out tally
	for i := range n {
		_, err := p.ProduceRun(b.ctx, []*ProducerMessage{{Topic: topic, Value: noise(i, size)}}, &out)
		require.NoError(t, err)
	}
	require.NoError(t, p.Flush(b.ctx))
	took := time.Since(start)
	out.require(t, n, 0)

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, requests, n)
	pauses := time.Duration(0)
	for i := 1; i < n; i++ {
		asked, kept := requests[i-1].Throttle, requests[i].Written.Sub(requests[i-1].Read)
		require.GreaterOrEqual(t, kept, asked, "request %d was written before its time", i)
		pauses += asked
	}
	t.Logf("%d bytes in %v, of which the broker asked for %v of pauses", n*size, took, pauses)
	require.Greater(t, pauses, 2*time.Second, "the broker has throttled")
	require.GreaterOrEqual(t, took, pauses)
	rate := float64(n*size) / (took + 10*time.Second).Seconds() // the broker averages over ten seconds before, too
	require.Less(t, rate, 1.2*quota)
	require.Positive(t, b.c.Metrics().Overall.Throttle.Count(), "and it is counted")
}
