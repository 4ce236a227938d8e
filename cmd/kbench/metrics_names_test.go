package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// What is served is what Prometheus' own parser reads and its own linter has nothing against: names,
// base units, types and help.
func TestMetricsAreNamedAsOpenMetricsWants(t *testing.T) {
	e, err := startExporter("127.0.0.1:0", nil, true)
	require.NoError(t, err)
	defer e.close()
	e.begin("p00", 0, func() client.Metrics { return client.Metrics{} })
	e.update(run.Progress{Phase: run.PhaseMeasure, Acked: 7, Failed: 2, Unknown: 1, Lag: 3, Elapsed: time.Second, TargetRate: 100, Rate: 99,
		P50: 400 * time.Microsecond, P99: 3 * time.Millisecond})

	scraped := func(accept string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		e.server.Handler.ServeHTTP(answer, request)
		require.Equal(t, http.StatusOK, answer.Code)
		return answer
	}
	plain := scraped("text/plain")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(plain.Body.String()))
	require.NoError(t, err)
	require.Contains(t, families, "kbench_run_messages_total")
	for sample, want := range map[string]float64{
		`kbench_run_messages_total{outcome="acked"`: 7, `kbench_run_messages_total{outcome="failed"`: 2, `kbench_run_messages_total{outcome="unknown"`: 1,
		`kbench_run_rate_messages_per_second`:                           99,
		`kbench_run_latency_seconds{percentile="50",point="p00",repeat`: 0.0004,
		`kbench_run_latency_seconds{percentile="99",point="p00",repeat`: 0.003,
	} {
		require.Equal(t, want, valueOf(t, plain.Body.String(), sample), sample)
	}
	require.Contains(t, plain.Body.String(), `series="response"`)
	requireWellNamed(t, plain.Body.String())
	open := scraped("application/openmetrics-text; version=1.0.0")
	require.Contains(t, open.Header().Get("Content-Type"), "application/openmetrics-text; version=1.0.0")
	require.True(t, strings.HasSuffix(open.Body.String(), "# EOF\n"))
	require.Contains(t, open.Body.String(), "# TYPE kbench_run_messages counter\n")
	require.Contains(t, open.Body.String(), "# TYPE kbench_run_latency_seconds gauge\n")
	e.update(run.Progress{Phase: run.PhaseMeasure, P50: time.Millisecond, P99: time.Millisecond})
	require.Contains(t, scraped("text/plain").Body.String(), `series="service"`, "a closed loop has no due times")
	e.update(run.Progress{Phase: run.PhaseDrain})
	require.NotContains(t, scraped("text/plain").Body.String(), "latency_seconds", "nothing was decided lately")
}

// requireWellNamed holds our metrics of a scrape against the rules of Prometheus' linter.
func requireWellNamed(t *testing.T, body string) {
	t.Helper()
	require.Contains(t, body, "kbench_")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	require.NoError(t, err)
	for _, p := range problems {
		require.False(t, strings.HasPrefix(p.Metric, "kbench_"), "%s: %s", p.Metric, p.Text)
	}
}
