package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scrape reads /metrics until text is in it.
func scrape(t *testing.T, url, text string) string {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	body := ""
	require.Eventually(t, func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		body = string(all)
		return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(body, text)
	}, patience, 50*time.Millisecond, "%s has no %q", url, text)
	return body
}

// valueOf is the value of the one sample that begins with name.
func valueOf(t *testing.T, body, name string) float64 {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\S* (\S+)$`).FindStringSubmatch(body)
	require.NotNil(t, m, "no %s in:\n%s", name, body)
	v, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return v
}

func TestMetricsAreServedWhileItRuns(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), nil, args("run", "quick", brief, "--rate", "500", "--duration", "20s", "--metrics-addr", "127.0.0.1:0")...)
	p.says("/metrics")
	url := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/metrics`).FindString(p.err.String())
	require.NotEmpty(t, url)
	body := scrape(t, url, `phase="measure"`)
	labels := `{outcome="acked",point="`
	require.Positive(t, valueOf(t, body, "kbench_run_messages_total"+labels))
	require.Zero(t, valueOf(t, body, `kbench_run_messages_total{outcome="unknown",point="`))
	require.Positive(t, valueOf(t, body, `kbench_run_latency_seconds{percentile="99",point="`))
	require.InDelta(t, 500, valueOf(t, body, "kbench_run_target_rate_messages_per_second"), 0.5)
	require.Positive(t, valueOf(t, body, "go_goroutines"))
	require.Regexp(t, `kbench_client_request_duration_seconds_bucket\{broker="0",point="[^"]*",repeat="[0-9]+",request="Produce",le="0.1"\} [1-9]`, body)
	require.Regexp(t, `kbench_client_records_total\{broker="0",point="[^"]*",repeat="[0-9]+"\} [1-9]`, body)
	require.Regexp(t, `kbench_client_requests_total\{[^}]*request="Fetch"\} [1-9]`, body)
	requireWellNamed(t, body)
	p.signal(syscall.SIGINT)
	p.wait().requireCode(t, codeInterrupted)
	_, err := net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics"), time.Second)
	require.Error(t, err, "it ends with the run")
}

func TestMetricsAreOffByDefault(t *testing.T) {
	t.Parallel()
	e := kbenchIn(t, t.TempDir(), args("run", "quick", light)...)
	e.requireCode(t, codeDone)
	require.NotContains(t, e.err, "metrics")
}

func TestMetricsAddressThatCannotBeHad(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, addr := range []string{l.Addr().String(), "9400", "127.0.0.1:none"} {
		e := kbenchIn(t, t.TempDir(), args("run", "quick", light, "--metrics-addr", addr)...)
		e.requireCode(t, codeError)
		e.requireOneLine(t, "--metrics-addr "+addr, "give host:port")
	}
}
