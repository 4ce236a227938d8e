package client

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/results/hist"
)

// Metrics are what a client has measured since it was made; see Client.Metrics. They are the
// caller's own: nothing in them changes any more.
type Metrics struct {
	// Overall adds up all brokers, those that have left the cluster included. Its ID is −1.
	Overall BrokerMetrics
	// Brokers lists the nodes by id, after the bootstrap addresses whose node is not known (ID −1).
	// A node that left the cluster stays listed.
	Brokers []BrokerMetrics
}

// BrokerMetrics are about one broker, all connections of the client to it together: the one that
// producers share, and those of readers.
type BrokerMetrics struct {
	ID   int32  // of the node; −1 for a bootstrap address whose node is not known
	Addr string // host:port; empty in Overall, and for a node that left

	// InFlight is how many requests await their answer now.
	InFlight int64
	// Dials is how many connections were opened, or tried to.
	Dials int64
	// Requests are listed by kind, in the order of their names. A request counts when its write
	// began, those that set a connection up (ApiVersions, SASL) included.
	Requests []RequestMetrics
	// Throttle holds, in nanoseconds, each wait that the broker asked for (KIP-219).
	Throttle *hist.Histogram

	// BatchBytes are the sizes of the batches in Produce requests as sent, compressed, those sent
	// again included.
	BatchBytes Summary
	// RawBytes is the size of the same batches before compression, together.
	RawBytes int64
	// RecordsPerRequest and BatchesPerRequest are about Produce requests.
	RecordsPerRequest, BatchesPerRequest Summary
}

// CompressionRatio is how many bytes one byte sent stands for: 1 without compression, and when
// nothing was produced.
func (m *BrokerMetrics) CompressionRatio() float64 {
	if m.BatchBytes.Sum == 0 {
		return 1
	}
	return float64(m.RawBytes) / float64(m.BatchBytes.Sum)
}

// Request is the metrics of one kind of request, by Kafka's name for it; zero for one that was
// never sent.
func (m *BrokerMetrics) Request(name string) RequestMetrics {
	for _, r := range m.Requests {
		if r.Name == name {
			return r
		}
	}
	return RequestMetrics{Name: name, Latency: hist.New()}
}

// RequestMetrics are about one kind of request.
type RequestMetrics struct {
	Name string // Kafka's own, e.g. "Produce"
	// Lost is how many were never answered because the connection closed. Requests without an
	// answer by design (acks=0) are neither lost nor answered.
	Lost int64
	// Latency is from when the write began until the whole answer had been read, in nanoseconds;
	// one value for each answer.
	Latency *hist.Histogram
	// RequestBytes and ResponseBytes are the sizes of whole frames; their Counts are the requests
	// written and the answers read.
	RequestBytes, ResponseBytes Summary
}

// Summary is what is kept of sizes and counts. The zero value is empty.
type Summary struct{ Count, Sum, Min, Max int64 }

// Mean is 0 while nothing was counted.
func (s Summary) Mean() float64 {
	if s.Count == 0 {
		return 0
	}
	return float64(s.Sum) / float64(s.Count)
}

func (s *Summary) add(v int64) {
	if s.Count == 0 {
		s.Min, s.Max = v, v
	}
	s.Count++
	s.Sum += v
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
}

func (s *Summary) merge(o Summary) {
	switch {
	case o.Count == 0:
	case s.Count == 0:
		*s = o
	default:
		*s = Summary{s.Count + o.Count, s.Sum + o.Sum, min(s.Min, o.Min), max(s.Max, o.Max)}
	}
}

// Metrics copies what was measured so far. It is safe for concurrent use, also after Close. Each
// broker is copied at one instant, different brokers at slightly different ones; while one is
// copied (some microseconds) its requests wait. Measuring costs a short lock of the broker's own
// twice a request, and nothing per message.
func (c *Client) Metrics() Metrics {
	c.mu.Lock()
	var all []BrokerMetrics
	for id, m := range c.retired {
		all = append(all, m.snapshot(id, ""))
	}
	brokers := slices.Clone(c.seeds)
	for _, b := range c.nodes {
		if !c.isSeed(b) {
			brokers = append(brokers, b)
		}
	}
	c.mu.Unlock()
	for _, b := range brokers {
		all = append(all, b.metrics.snapshot(b.ID(), b.addr))
	}
	return collect(all)
}

// Metrics are those of the producer's client, shared or its own; see Client.Metrics.
func (p *AsyncProducer) Metrics() Metrics { return p.client.Metrics() }

// Metrics are those of the producer's client, shared or its own; see Client.Metrics.
func (p *SyncProducer) Metrics() Metrics { return p.async.client.Metrics() }

// Metrics are those of the reader's client, shared or its own; see Client.Metrics.
func (r *Reader) Metrics() Metrics { return r.client.Metrics() }

// MergeMetrics adds up the metrics of several clients, node by node.
func MergeMetrics(of ...Metrics) Metrics {
	var all []BrokerMetrics
	for _, m := range of {
		all = append(all, m.Brokers...)
	}
	return collect(all)
}

// collect adds up what belongs to the same node, or address while no node is known.
func collect(all []BrokerMetrics) Metrics {
	m := Metrics{Overall: BrokerMetrics{ID: -1, Throttle: hist.New()}}
	slices.SortStableFunc(all, func(a, b BrokerMetrics) int {
		if by := cmp.Compare(a.ID, b.ID); by != 0 || a.ID >= 0 {
			return by
		}
		return cmp.Compare(a.Addr, b.Addr)
	})
	for i := range all {
		b := &all[i]
		m.Overall.merge(b)
		if n := len(m.Brokers); n > 0 && m.Brokers[n-1].ID == b.ID && (b.ID >= 0 || m.Brokers[n-1].Addr == b.Addr) {
			m.Brokers[n-1].merge(b)
			m.Brokers[n-1].Addr = cmp.Or(b.Addr, m.Brokers[n-1].Addr)
			continue
		}
		own := BrokerMetrics{ID: b.ID, Addr: b.Addr, Throttle: hist.New()}
		own.merge(b)
		m.Brokers = append(m.Brokers, own)
	}
	return m
}

func (m *BrokerMetrics) merge(o *BrokerMetrics) {
	m.InFlight += o.InFlight
	m.Dials += o.Dials
	m.Throttle.Merge(o.Throttle)
	m.BatchBytes.merge(o.BatchBytes)
	m.RawBytes += o.RawBytes
	m.RecordsPerRequest.merge(o.RecordsPerRequest)
	m.BatchesPerRequest.merge(o.BatchesPerRequest)
	for _, r := range o.Requests {
		i, found := slices.BinarySearchFunc(m.Requests, r.Name, func(a RequestMetrics, name string) int { return cmp.Compare(a.Name, name) })
		if !found {
			m.Requests = slices.Insert(m.Requests, i, RequestMetrics{Name: r.Name, Latency: hist.New()})
		}
		mine := &m.Requests[i]
		mine.Lost += r.Lost
		mine.Latency.Merge(r.Latency)
		mine.RequestBytes.merge(r.RequestBytes)
		mine.ResponseBytes.merge(r.ResponseBytes)
	}
}

// keepMetrics keeps what is measured of a node that is about to be forgotten, until it comes back,
// perhaps at another address (measureAsBefore). Seeds are never forgotten. Called with mu held.
func (c *Client) keepMetrics(b *Broker) {
	if !c.isSeed(b) && b.metrics.used() {
		c.retired[b.ID()] = b.metrics
	}
}

// measureAsBefore lets a node go on with what was measured before it left. Called with mu held.
func (c *Client) measureAsBefore(b *Broker) {
	if m := c.retired[b.ID()]; m != nil {
		delete(c.retired, b.ID())
		b.metrics, b.opts.Observer = m, m
	}
}

// brokerMetrics measures one broker; it is its connections' conn.Observer. The zero value is
// ready.
type brokerMetrics struct {
	mu       sync.Mutex
	dials    int64
	inFlight int64
	requests []*requestMetrics // few kinds: searching them is cheaper than a map
	throttle latencies
	produced producedMetrics
}

type requestMetrics struct {
	key             int16
	lost            int64
	latency         latencies
	request, answer Summary
}

type producedMetrics struct {
	batchBytes, records, batches Summary
	raw                          int64
}

// latencies is a histogram that costs little until more than a few values have come: an idle
// client has sent each kind of request once or twice to each broker.
type latencies struct {
	few  [4]time.Duration
	n    int8
	more *hist.Histogram
}

func (l *latencies) record(d time.Duration) {
	if l.more == nil {
		if int(l.n) < len(l.few) {
			l.few[l.n] = d
			l.n++
			return
		}
		l.more = hist.New()
	}
	l.more.Record(int64(d))
}

func (l *latencies) snapshot() *hist.Histogram {
	h := hist.New()
	h.Merge(l.more)
	for _, d := range l.few[:l.n] {
		h.Record(int64(d))
	}
	return h
}

// of is the metrics of one kind of request. Called with mu held.
func (m *brokerMetrics) of(key int16) *requestMetrics {
	for _, r := range m.requests {
		if r.key == key {
			return r
		}
	}
	r := &requestMetrics{key: key}
	m.requests = append(m.requests, r)
	return r
}

// Sent implements conn.Observer.
func (m *brokerMetrics) Sent(key int16, size int, awaited bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).request.add(int64(size))
	if awaited {
		m.inFlight++
	}
}

// Answered implements conn.Observer.
func (m *brokerMetrics) Answered(key int16, size int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
	r := m.of(key)
	r.answer.add(int64(size))
	r.latency.record(took)
}

// Lost implements conn.Observer.
func (m *brokerMetrics) Lost(key int16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
	m.of(key).lost++
}

// Throttled implements conn.Observer.
func (m *brokerMetrics) Throttled(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.throttle.record(d)
}

func (m *brokerMetrics) dialled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials++
}

// used says that there is something to keep.
func (m *brokerMetrics) used() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dials > 0
}

// wrote counts what a Produce request held.
func (m *brokerMetrics) wrote(i *RequestInfo, sizes Summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.produced
	p.records.add(int64(i.Messages))
	p.batches.add(int64(i.Batches))
	p.raw += int64(i.RawBytes)
	p.batchBytes.merge(sizes)
}

func (m *brokerMetrics) snapshot(id int32, addr string) BrokerMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := BrokerMetrics{
		ID: id, Addr: addr, InFlight: m.inFlight, Dials: m.dials, Throttle: m.throttle.snapshot(),
		BatchBytes: m.produced.batchBytes, RawBytes: m.produced.raw,
		RecordsPerRequest: m.produced.records, BatchesPerRequest: m.produced.batches,
	}
	for _, r := range m.requests {
		s.Requests = append(s.Requests, RequestMetrics{
			Name: kmsg.NameForKey(r.key), Lost: r.lost, Latency: r.latency.snapshot(),
			RequestBytes: r.request, ResponseBytes: r.answer,
		})
	}
	slices.SortFunc(s.Requests, func(a, b RequestMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
