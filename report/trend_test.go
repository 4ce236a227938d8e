package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/report/gate"
)

func TestTrendHTML(t *testing.T) {
	trend := gate.Trend{Name: "response.p50", Unit: "ns", Changes: []int{6}}
	for i := range 12 {
		v := 2e6 + float64(i/6)*1e6
		trend.Values = append(trend.Values, gate.TrendValue{Result: "night-" + hostileText, At: fixtureStart.Add(time.Duration(i) * 24 * time.Hour), Median: v, Min: v * 0.9, Max: v * 1.1, Failed: i == 6})
	}
	d := &gate.Decision{Kind: gate.KindBaseline, Verdict: gate.Fail, Workload: "steady", Notes: []string{"judged beside 10 results"}, Trends: []gate.Trend{trend}}
	var b bytes.Buffer
	f := acksNone(t)
	require.NoError(t, TrendHTML(&b, d, Named{Name: "new", Dir: f.dir, Result: f.result}))
	page := b.String()
	require.Equal(t, 2, strings.Count(page, ` trend"`), "wide and narrow")
	require.Equal(t, 2, strings.Count(page, `class="target"`), "a line at the change")
	require.Equal(t, 2*2, strings.Count(page, `class="line thin c1"`), "two levels")
	require.Equal(t, 2, strings.Count(page, "mark c0 hollow"), "the failed one")
	require.Contains(t, page, "failed changed")
	require.Contains(t, page, "judged beside 10 results")
	require.NotContains(t, trendChart(&trend, widePaper), "NaN")
	require.NotContains(t, page, "<img")
	require.NotRegexp(t, regexp.MustCompile(`(src|href)="https?:`), page)
	require.Error(t, TrendHTML(&b, &gate.Decision{}, Named{Result: f.result}))
}
