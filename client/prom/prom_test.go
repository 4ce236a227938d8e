package prom

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/results/hist"
)

func sample() client.Metrics {
	latency := hist.New()
	for _, d := range []time.Duration{200 * time.Microsecond, 3 * time.Millisecond, 3 * time.Millisecond, 40 * time.Second, 90 * time.Second} {
		latency.Record(int64(d))
	}
	throttle := hist.New()
	throttle.Record(int64(250 * time.Millisecond))
	b := client.BrokerMetrics{
		ID: 2, Addr: "b:9092", InFlight: 3, Dials: 4, Throttle: throttle, RawBytes: 9000,
		BatchBytes:        client.Summary{Count: 10, Sum: 3000, Min: 100, Max: 500},
		RecordsPerRequest: client.Summary{Count: 5, Sum: 70, Min: 1, Max: 30},
		Requests: []client.RequestMetrics{{
			Name: "Produce", Lost: 1, Latency: latency,
			RequestBytes: client.Summary{Count: 6, Sum: 3300}, ResponseBytes: client.Summary{Count: 5, Sum: 250},
		}},
	}
	seed := client.BrokerMetrics{ID: -1, Addr: "boot:9092", Throttle: hist.New(), Dials: 1}
	return client.Metrics{Brokers: []client.BrokerMetrics{seed, b}}
}

func TestEveryMetricIsExported(t *testing.T) {
	c := NewCollector(sample, map[string]string{"point": "p1"})
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP kbench_client_batch_bytes_total Bytes of batches as sent.
# TYPE kbench_client_batch_bytes_total counter
kbench_client_batch_bytes_total{broker="2",point="p1"} 3000
kbench_client_batch_bytes_total{broker="boot:9092",point="p1"} 0
# HELP kbench_client_batch_raw_bytes_total Bytes of the same batches before compression.
# TYPE kbench_client_batch_raw_bytes_total counter
kbench_client_batch_raw_bytes_total{broker="2",point="p1"} 9000
kbench_client_batch_raw_bytes_total{broker="boot:9092",point="p1"} 0
# HELP kbench_client_batches_total Batches in Produce requests, those sent again included.
# TYPE kbench_client_batches_total counter
kbench_client_batches_total{broker="2",point="p1"} 10
kbench_client_batches_total{broker="boot:9092",point="p1"} 0
# HELP kbench_client_connections_total Connections opened, or tried to.
# TYPE kbench_client_connections_total counter
kbench_client_connections_total{broker="2",point="p1"} 4
kbench_client_connections_total{broker="boot:9092",point="p1"} 1
# HELP kbench_client_records_total Records in Produce requests, those sent again included.
# TYPE kbench_client_records_total counter
kbench_client_records_total{broker="2",point="p1"} 70
kbench_client_records_total{broker="boot:9092",point="p1"} 0
# HELP kbench_client_request_bytes_total Bytes of requests, whole frames.
# TYPE kbench_client_request_bytes_total counter
kbench_client_request_bytes_total{broker="2",point="p1",request="Produce"} 3300
# HELP kbench_client_request_duration_seconds From the begin of a request's write until its answer was read.
# TYPE kbench_client_request_duration_seconds histogram
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.0001"} 0
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.00025"} 1
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.0005"} 1
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.001"} 1
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.0025"} 1
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.005"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.01"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.025"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.05"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.1"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.25"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="0.5"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="1"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="2.5"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="5"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="10"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="30"} 3
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="60"} 4
kbench_client_request_duration_seconds_bucket{broker="2",point="p1",request="Produce",le="+Inf"} 5
kbench_client_request_duration_seconds_sum{broker="2",point="p1",request="Produce"} 130.0062
kbench_client_request_duration_seconds_count{broker="2",point="p1",request="Produce"} 5
# HELP kbench_client_requests_in_flight Requests that await their answer.
# TYPE kbench_client_requests_in_flight gauge
kbench_client_requests_in_flight{broker="2",point="p1"} 3
kbench_client_requests_in_flight{broker="boot:9092",point="p1"} 0
# HELP kbench_client_requests_lost_total Requests whose answer never came because the connection closed.
# TYPE kbench_client_requests_lost_total counter
kbench_client_requests_lost_total{broker="2",point="p1",request="Produce"} 1
# HELP kbench_client_requests_total Requests written.
# TYPE kbench_client_requests_total counter
kbench_client_requests_total{broker="2",point="p1",request="Produce"} 6
# HELP kbench_client_response_bytes_total Bytes of answers, whole frames.
# TYPE kbench_client_response_bytes_total counter
kbench_client_response_bytes_total{broker="2",point="p1",request="Produce"} 250
# HELP kbench_client_throttle_seconds Waits that the broker asked for.
# TYPE kbench_client_throttle_seconds summary
kbench_client_throttle_seconds_sum{broker="2",point="p1"} 0.25
kbench_client_throttle_seconds_count{broker="2",point="p1"} 1
kbench_client_throttle_seconds_sum{broker="boot:9092",point="p1"} 0
kbench_client_throttle_seconds_count{broker="boot:9092",point="p1"} 0
`)))
}
