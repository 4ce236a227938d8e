package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/report"
	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
)

// Which points were taken, of how many, and what makes no sense, is in the plan, the result and
// every report of it.
func TestDesignsAreSaid(t *testing.T) {
	sweep := []string{"producer.idempotent=true,false", "producer.requiredAcks=all,1", "net.maxOpenRequests=5,6"}
	for _, row := range []struct {
		says string
		set  []string
		want *results.Design
	}{
		{"a matrix is what everybody expects", nil, nil},
		{"one factor at a time", []string{"design.kind=oneFactor"}, &results.Design{Kind: "oneFactor", Of: 8, Base: "p00",
			Text: "one factor at a time: each point differs from p00 in one setting; all combinations would be 8"}},
		{"a sample", []string{"design={kind: sample, points: 3}"}, &results.Design{Kind: "sample", Of: 8, Text: "a sample of the 8 combinations, drawn by the seed"}},
	} {
		t.Run(row.says, func(t *testing.T) {
			l := loading{overrides: workloads.Overrides{Sweep: sweep, Set: row.set}}
			def, p, err := l.load([]string{"quick"})
			require.NoError(t, err)
			r, err := newResult(def, p, client.NewConfig(), results.Cluster{})
			require.NoError(t, err)
			require.Equal(t, row.want, r.Design)
			var md strings.Builder
			require.NoError(t, report.Markdown(&md, r))
			if row.want == nil {
				require.Contains(t, p.String(), "p01  idempotent=true requiredAcks=all maxOpenRequests=6  (skipped: ", "more than five in flight with idempotence")
				require.Contains(t, p.String(), "p02  idempotent=true requiredAcks=1 maxOpenRequests=5  (skipped: ")
				require.NotContains(t, md.String(), "combinations")
				return
			}
			require.Contains(t, md.String(), "points: "+row.want.Text)
			require.Contains(t, p.String(), row.want.Text)
			require.Equal(t, row.want.Kind, planJSON(p).Design.Kind)
		})
	}
}
