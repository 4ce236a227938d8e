package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/prom"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads/run"
)

// exporter serves /metrics for Prometheus while runs are executed. A nil exporter does nothing.
type exporter struct {
	registry *prometheus.Registry
	server   *http.Server
	serving  sync.WaitGroup

	mu      sync.Mutex
	current *runCollector // of the run under way or the last one; nil before the first
	client  *prom.Collector
}

// startExporter listens on addr, or returns nil when it is empty.
func startExporter(addr string, errOut io.Writer, quiet bool) (*exporter, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics-addr %s: %w; give host:port of a free port, e.g. 127.0.0.1:9400", addr, err)
	}
	e := &exporter{registry: prometheus.NewRegistry()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second, EnableOpenMetrics: true}))
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	e.serving.Add(1)
	// Owned by the exporter; ended by close, which waits.
	go func() {
		defer e.serving.Done()
		if err := e.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintf(errOut, "kbench: /metrics ended: %v\n", err)
		}
	}()
	if !quiet {
		_, _ = fmt.Fprintf(errOut, "metrics for Prometheus at http://%s/metrics\n", l.Addr())
	}
	return e, nil
}

// begin puts a run in the place of the one before. Its labels tell runs apart: counters start anew
// with each.
func (e *exporter) begin(point string, repeat int, source func() client.Metrics) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil {
		e.registry.Unregister(e.current)
		e.registry.Unregister(e.client)
	}
	labels := prometheus.Labels{"point": point, "repeat": strconv.Itoa(repeat)}
	e.current, e.client = newRunCollector(labels), prom.NewCollector(source, labels)
	e.registry.MustRegister(e.current, e.client)
}

// update takes in how the run stands.
func (e *exporter) update(p run.Progress) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil {
		e.current.set(p)
	}
}

// close ends the server, a scrape under way within a second.
func (e *exporter) close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if e.server.Shutdown(ctx) != nil {
		_ = e.server.Close()
	}
	e.serving.Wait()
}

// runCollector shows how a run stands.
type runCollector struct {
	messages, inFlight, received, lag, target, rate, latency, phase *prometheus.Desc

	mu   sync.Mutex
	told bool
	last run.Progress
}

func newRunCollector(labels prometheus.Labels) *runCollector {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("kbench_run_"+name, help, variable, labels)
	}
	return &runCollector{
		messages: desc("messages_total", "Messages decided since the run began, warm-up included.", "outcome"),
		inFlight: desc("messages_in_flight", "Messages handed over and not decided."),
		received: desc("messages_received_total", "Messages that consumers received."),
		lag:      desc("consumer_lag_messages", "Messages that consumers have not received; absent while not known."),
		target:   desc("target_rate_messages_per_second", "Rate asked for; 0 in a closed loop."),
		rate:     desc("rate_messages_per_second", "Messages acked a second of late (received, where nothing is produced)."),
		latency:  desc("latency_seconds", "Latency of the messages decided in about the last second: series response, or service in a closed loop; absent without any.", "series", "percentile"),
		phase:    desc("phase_info", "Where in its course the run is.", "phase"),
	}
}

func (c *runCollector) set(p run.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.told = p, true
}

// Describe implements prometheus.Collector.
func (c *runCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.messages, c.inFlight, c.received, c.lag, c.target, c.rate, c.latency, c.phase} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *runCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	p, told := c.last, c.told
	c.mu.Unlock()
	if !told {
		return
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	put(c.messages, prometheus.CounterValue, float64(p.Acked), "acked")
	put(c.messages, prometheus.CounterValue, float64(p.Failed), "failed")
	put(c.messages, prometheus.CounterValue, float64(p.Unknown), "unknown")
	put(c.inFlight, prometheus.GaugeValue, float64(p.InFlight))
	put(c.received, prometheus.CounterValue, float64(p.Received))
	if p.Lag >= 0 {
		put(c.lag, prometheus.GaugeValue, float64(p.Lag))
	}
	put(c.target, prometheus.GaugeValue, p.TargetRate)
	put(c.rate, prometheus.GaugeValue, p.Rate)
	if p.P99 > 0 {
		series := results.SeriesResponse
		if p.TargetRate == 0 {
			series = results.SeriesService
		}
		put(c.latency, prometheus.GaugeValue, p.P50.Seconds(), series, "50")
		put(c.latency, prometheus.GaugeValue, p.P99.Seconds(), series, "99")
	}
	put(c.phase, prometheus.GaugeValue, 1, string(p.Phase))
}
