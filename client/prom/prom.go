// Package prom shows the metrics of Kafka clients to Prometheus. It is a package of its own so that
// the client does not need Prometheus.
package prom

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results/hist"
)

// Collector is a prometheus.Collector over the metrics of one or several clients. It is safe for
// concurrent use, and takes nothing from the clients but at a scrape.
type Collector struct {
	source func() client.Metrics

	requests, lost, requestBytes, responseBytes, duration *prometheus.Desc // by broker and request
	inFlight, dials, throttle                             *prometheus.Desc // by broker
	batches, batchBytes, rawBytes, records                *prometheus.Desc // by broker
}

// buckets are the upper bounds of the latency histogram, in nanoseconds: from where a broker on the
// same machine is to where requests time out.
var buckets = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// NewCollector makes a collector; source, such as Client.Metrics, is called at every scrape. labels
// are added to every metric and may be nil.
func NewCollector(source func() client.Metrics, labels map[string]string) *Collector {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("kbench_client_"+name, help, append([]string{"broker"}, variable...), labels)
	}
	return &Collector{
		source:        source,
		requests:      desc("requests_total", "Requests written.", "request"),
		lost:          desc("requests_lost_total", "Requests whose answer never came because the connection closed.", "request"),
		requestBytes:  desc("request_bytes_total", "Bytes of requests, whole frames.", "request"),
		responseBytes: desc("response_bytes_total", "Bytes of answers, whole frames.", "request"),
		duration:      desc("request_duration_seconds", "From the begin of a request's write until its answer was read.", "request"),
		inFlight:      desc("requests_in_flight", "Requests that await their answer."),
		dials:         desc("connections_total", "Connections opened, or tried to."),
		throttle:      desc("throttle_seconds", "Waits that the broker asked for."),
		batches:       desc("batches_total", "Batches in Produce requests, those sent again included."),
		batchBytes:    desc("batch_bytes_total", "Bytes of batches as sent."),
		rawBytes:      desc("batch_raw_bytes_total", "Bytes of the same batches before compression."),
		records:       desc("records_total", "Records in Produce requests, those sent again included."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.lost, c.requestBytes, c.responseBytes, c.duration,
		c.inFlight, c.dials, c.throttle, c.batches, c.batchBytes, c.rawBytes, c.records,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	m := c.source()
	for i := range m.Brokers {
		c.collectBroker(ch, &m.Brokers[i])
	}
}

func (c *Collector) collectBroker(ch chan<- prometheus.Metric, b *client.BrokerMetrics) {
	broker := strconv.Itoa(int(b.ID))
	if b.ID < 0 {
		broker = b.Addr
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{broker}, labels...)...)
	}
	ch <- prometheus.MustNewConstMetric(c.inFlight, prometheus.GaugeValue, float64(b.InFlight), broker)
	counter(c.dials, b.Dials)
	ch <- prometheus.MustNewConstSummary(c.throttle, uint64(b.Throttle.Count()), sum(b.Throttle), nil, broker)
	counter(c.batches, b.BatchBytes.Count)
	counter(c.batchBytes, b.BatchBytes.Sum)
	counter(c.rawBytes, b.RawBytes)
	counter(c.records, b.RecordsPerRequest.Sum)
	for i := range b.Requests {
		r := &b.Requests[i]
		counter(c.requests, r.RequestBytes.Count, r.Name)
		counter(c.lost, r.Lost, r.Name)
		counter(c.requestBytes, r.RequestBytes.Sum, r.Name)
		counter(c.responseBytes, r.ResponseBytes.Sum, r.Name)
		ch <- prometheus.MustNewConstHistogram(c.duration, uint64(r.Latency.Count()), sum(r.Latency), cumulative(r.Latency), broker, r.Name)
	}
}

// sum is in seconds.
func sum(h *hist.Histogram) float64 {
	return h.Mean() * float64(h.Count()) / float64(time.Second)
}

// cumulative counts the values up to each bound, to the resolution of the histogram (0.1 %).
func cumulative(h *hist.Histogram) map[float64]uint64 {
	out := make(map[float64]uint64, len(buckets))
	for _, bound := range buckets {
		out[bound.Seconds()] = uint64(h.Count() - h.CountAbove(int64(bound)))
	}
	return out
}
