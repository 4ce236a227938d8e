package client

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/record"
)

func TestMetricsOfEachBrokerAndOverall(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	parts := led(2, 0, 1)
	parts[1].Leader = 1
	w.topics["t"] = parts
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if kmsg.Key(raw.Key) != kmsg.Produce {
			return w.ordinary(addr, raw)
		}
		reply := produced(raw, nil)
		if reply.Delay = 10 * time.Millisecond; addr == "b:1" {
			reply.Delay = 40 * time.Millisecond
		}
		return reply
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Producer.Partitioner = "manual" }, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		send := func(partition int32, messages int) {
			run := make([]*ProducerMessage, messages)
			for i := range run {
				run[i] = &ProducerMessage{Topic: "t", Partition: partition, Value: make([]byte, 100)}
			}
			_, err := p.ProduceRun(t.Context(), run, nil)
			require.NoError(t, err)
			require.NoError(t, p.Flush(t.Context()))
		}
		for range 10 {
			send(0, 5)
		}
		for range 3 {
			send(1, 7)
		}
		m := p.Metrics()
		require.Len(t, m.Brokers, 2)
		for i, want := range []struct {
			addr              string
			requests, records int64
			latency           time.Duration
		}{{"a:1", 10, 5, 10 * time.Millisecond}, {"b:1", 3, 7, 40 * time.Millisecond}} {
			b := m.Brokers[i]
			require.EqualValues(t, i, b.ID)
			require.Equal(t, want.addr, b.Addr)
			require.EqualValues(t, 1, b.Dials)
			require.Zero(t, b.InFlight)
			r := b.Request("Produce")
			require.Equal(t, want.requests, r.RequestBytes.Count)
			require.Equal(t, want.requests, r.ResponseBytes.Count)
			require.Equal(t, want.requests, r.Latency.Count())
			require.EqualValues(t, want.latency, r.Latency.Min())
			require.EqualValues(t, want.latency, r.Latency.Max())
			require.Equal(t, Summary{want.requests, want.requests * want.records, want.records, want.records}, b.RecordsPerRequest)
			require.Equal(t, Summary{want.requests, want.requests, 1, 1}, b.BatchesPerRequest)
			require.Equal(t, want.requests, b.BatchBytes.Count)
			require.Greater(t, b.BatchBytes.Mean(), float64(100*want.records))
			require.Equal(t, b.RawBytes, b.BatchBytes.Sum, "nothing is compressed")
			require.InDelta(t, 1, b.CompressionRatio(), 1e-9)
			require.EqualValues(t, 1, b.Request("ApiVersions").Latency.Count())
			require.Greater(t, r.RequestBytes.Min, b.BatchBytes.Min, "the whole frame")
		}
		all := m.Overall
		require.EqualValues(t, -1, all.ID)
		require.EqualValues(t, 13, all.Request("Produce").Latency.Count())
		require.EqualValues(t, 10*5+3*7, all.RecordsPerRequest.Sum)
		require.EqualValues(t, 40*time.Millisecond, all.Request("Produce").Latency.Max())
		require.EqualValues(t, 10*time.Millisecond, all.Request("Produce").Latency.Min())
		require.Positive(t, m.Brokers[0].Request("Metadata").Latency.Count())
		require.Zero(t, all.Request("Fetch").Latency.Count(), "never sent")
	})
}

func TestMetricsOfWhatIsInFlightThrottledAndLost(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1"})
	w.topics["t"] = led(1, 0, 1)
	var hold chan struct{}
	throttle, lose := int32(0), false
	handle := func(addr string, raw rawserver.Request) rawserver.Reply {
		if kmsg.Key(raw.Key) != kmsg.Produce {
			return w.ordinary(addr, raw)
		}
		if lose {
			lose = false
			return rawserver.Reply{Close: true}
		}
		req := raw.Decode().(*kmsg.ProduceRequest)
		if req.Acks == 0 {
			return rawserver.Reply{}
		}
		reply := produced(raw, nil)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		resp.SetVersion(raw.Version)
		if resp.ReadFrom(reply.Body) == nil {
			resp.ThrottleMillis = throttle
			reply = rawserver.Respond(raw, resp)
		}
		reply.Wait = hold
		return reply
	}
	inBubble(t, handle, func(t *testing.T, n *scripted) {
		c := n.mustClient(func(c *Config) { c.Net.MaxOpenRequests = 3 }, "a:1")
		defer c.Close()
		p, err := NewAsyncProducerFromClient(c)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(t.Context())) }()
		hold = make(chan struct{})
		for range 5 {
			_, err := p.ProduceRun(t.Context(), numbered(1, 1), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.EqualValues(t, 3, c.Metrics().Overall.InFlight, "net.maxOpenRequests")
		close(hold)
		require.NoError(t, p.Flush(t.Context()))
		require.Zero(t, c.Metrics().Overall.InFlight)

		throttle = 250
		_, err = p.ProduceRun(t.Context(), numbered(1, 1), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(t.Context()))
		throttle = 0
		wait := c.Metrics().Overall.Throttle
		require.EqualValues(t, 1, wait.Count())
		require.EqualValues(t, 250*time.Millisecond, wait.Max())

		lose = true
		_, err = p.ProduceRun(t.Context(), numbered(1, 1), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(t.Context()))
		m := c.Metrics().Overall
		require.EqualValues(t, 1, m.Request("Produce").Lost)
		require.Zero(t, m.InFlight)
		require.EqualValues(t, 2, m.Dials)
		require.EqualValues(t, 1, m.Request("Produce").RequestBytes.Count-m.Request("Produce").ResponseBytes.Count)
	})
}

func TestMetricsTellTheCompressionRatio(t *testing.T) {
	k := cluster(t, 1, 1)
	cfg := quickConfig()
	cfg.Producer.Compression = record.Gzip
	p := asyncProducer(t, k, cfg)
	for range 5 {
		run := []*ProducerMessage{{Topic: "t", Value: make([]byte, 10_000)}}
		_, err := p.ProduceRun(within(t), run, nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
	}
	m := p.Metrics().Overall
	require.EqualValues(t, 5, m.BatchBytes.Count)
	require.Greater(t, m.RawBytes, int64(50_000))
	require.Greater(t, m.CompressionRatio(), 20.0)
	require.Less(t, m.BatchBytes.Max, int64(500))
}

// What was measured of a node stays when it leaves, and goes on when it comes back elsewhere.
func TestMetricsOutliveTheirBrokers(t *testing.T) {
	w := newWorld(map[int32]string{0: "a:1", 1: "b:1"})
	inBubble(t, w.ordinary, func(t *testing.T, n *scripted) {
		c := n.mustClient(nil, "a:1")
		defer c.Close()
		require.NoError(t, c.Brokers()[1].Open(t.Context()))
		refresh := func(nodes map[int32]string) {
			w.set(func() { w.nodes = nodes })
			require.NoError(t, c.RefreshMetadata(t.Context()))
		}
		refresh(map[int32]string{0: "a:1"})
		m := c.Metrics()
		require.EqualValues(t, 1, m.Brokers[1].ID)
		require.EqualValues(t, 1, m.Brokers[1].Request("ApiVersions").Latency.Count(), "the node has left")
		refresh(map[int32]string{0: "a:1", 1: "c:1"})
		require.NoError(t, c.Brokers()[1].Open(t.Context()))
		m = c.Metrics()
		require.Len(t, m.Brokers, 2)
		require.Equal(t, "c:1", m.Brokers[1].Addr)
		require.EqualValues(t, 2, m.Brokers[1].Request("ApiVersions").Latency.Count(), "and is back elsewhere")
		require.EqualValues(t, 3, m.Overall.Dials)
		require.NoError(t, c.Close())
		require.Equal(t, m.Overall.Dials, c.Metrics().Overall.Dials, "also after Close")
	})
}

func TestMetricsAreSafeForConcurrentUse(t *testing.T) {
	k := cluster(t, 3, 6)
	p := asyncProducer(t, k, nil)
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() { // until stop is closed
			last := int64(0)
			for {
				m := p.Metrics()
				if n := m.Overall.Request("Produce").Latency.Count(); n < last {
					t.Errorf("the count fell from %d to %d", last, n)
				} else {
					last = n
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 50 {
		_, err := p.ProduceRun(within(t), numbered(100, 10), nil)
		require.NoError(t, err)
	}
	require.NoError(t, p.Flush(within(t)))
	close(stop)
	reading.Wait()
	m := p.Metrics()
	require.EqualValues(t, 5000, m.Overall.RecordsPerRequest.Sum)
	require.Zero(t, m.Overall.InFlight)
}

func TestSummariesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Int64Range(-1000, 1000)).Draw(t, "a")
		b := rapid.SliceOf(rapid.Int64Range(-1000, 1000)).Draw(t, "b")
		var left, right, both Summary
		for _, v := range a {
			left.add(v)
			both.add(v)
		}
		for _, v := range b {
			right.add(v)
			both.add(v)
		}
		left.merge(right)
		require.Equal(t, both, left)
	})
}

// Two clients of one cluster, as of two producers.
func TestMergedMetricsAreListedByNode(t *testing.T) {
	k := cluster(t, 2, 2)
	var of []Metrics
	for range 2 {
		p := asyncProducer(t, k, nil)
		_, err := p.ProduceRun(within(t), numbered(100, 10), nil)
		require.NoError(t, err)
		require.NoError(t, p.Flush(within(t)))
		of = append(of, p.Metrics())
	}
	m := MergeMetrics(of...)
	require.EqualValues(t, 200, m.Overall.RecordsPerRequest.Sum)
	byNode := map[int32]int{}
	for _, b := range m.Brokers {
		byNode[b.ID]++
	}
	require.Equal(t, 1, byNode[0])
	require.Equal(t, 1, byNode[1])
}

// Measuring costs no allocation once the histogram of a kind of request is there.
func TestMeasuringAllocatesNothing(t *testing.T) {
	m := &brokerMetrics{}
	one := func() {
		m.Sent(0, 100, true)
		m.Answered(0, 50, time.Millisecond)
		m.wrote(&RequestInfo{Messages: 10, Batches: 1, RawBytes: 1000}, Summary{1, 100, 100, 100})
	}
	for range 10 {
		one()
	}
	require.Zero(t, testing.AllocsPerRun(100, one))
}

func BenchmarkMeasuringARequest(b *testing.B) {
	m := &brokerMetrics{}
	info := &RequestInfo{Messages: 10, Batches: 6, RawBytes: 1000}
	b.ReportAllocs()
	for b.Loop() {
		m.Sent(0, 100, true)
		m.Answered(0, 50, time.Millisecond)
		m.wrote(info, Summary{6, 600, 100, 100})
	}
}
