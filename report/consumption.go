package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// mostPartitions is how many partitions a timeline has a line each for.
const mostPartitions = 12

// consumptionFacts are what is known of the consumers beside what they received.
func consumptionFacts(run *results.Run) []labelled {
	c := run.Consumption
	if c == nil {
		return nil
	}
	facts := groupFacts(c)
	if c.Lag != nil {
		facts = append(facts, labelled{"lag", lagText(c.Lag)})
	}
	if u := c.CatchUp; u != nil {
		facts = append(facts, labelled{"catch-up", catchUpText(u)})
		if text := effectText(u); text != "" {
			facts = append(facts, labelled{"", text})
		}
	}
	return append(facts, rebalanceFacts(c)...)
}

// mostGroups is how many groups a summary has a line each for.
const mostGroups = 12

// groupFacts say what each group received, where there are several.
func groupFacts(c *results.Consumption) []labelled {
	if len(c.Groups) < 2 {
		return nil
	}
	var facts []labelled
	for i, g := range c.Groups {
		if i == mostGroups {
			facts = append(facts, labelled{"", fmt.Sprintf("… and %s more", plural(len(c.Groups)-i, "group"))})
			break
		}
		text := count(g.Received) + " · " + integrityText(results.Counts{Lost: g.Lost, Duplicated: g.Duplicated,
			Reordered: g.Reordered, Corrupted: g.Corrupted, NotReceived: g.NotReceived})
		if g.Lag != nil {
			text += " · lag " + lagText(g.Lag)
		}
		facts = append(facts, labelled{fmt.Sprintf("group %d", i+1), text})
	}
	return facts
}

func lagText(l *results.Lag) string {
	text := "max " + count(l.MaxMessages)
	if l.MaxMessages > 0 {
		text += " at " + digits(float64(l.MaxAtNs)/1e9, 3) + " s"
	}
	return text + " · final " + count(l.FinalMessages)
}

func catchUpText(u *results.CatchUp) string {
	text := "a backlog"
	if u.BacklogMessages >= 0 {
		text = count(u.BacklogMessages) + " messages"
	}
	if !u.Reached {
		return text + " were not caught up with"
	}
	return text + " caught up with in " + duration(float64(u.TookNs)) + ", receiving " + quantity(u.MessagesPerSecond) + " msg/s"
}

// effectText is what catching up did to the producers.
func effectText(u *results.CatchUp) string {
	var parts []string
	for _, part := range []struct {
		name string
		s    *results.Series
	}{{"before", u.Before}, {"during", u.During}, {"after", u.After}} {
		if part.s != nil {
			parts = append(parts, duration(float64(part.s.P99Ns))+" "+part.name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return u.Series + " p99 " + strings.Join(parts, " · ")
}

// rebalanceFacts sum up what happened to the groups' members.
func rebalanceFacts(c *results.Consumption) []labelled {
	var n, longest, commits, stale int64
	for _, g := range c.Groups {
		n += g.Rebalances
		longest = max(longest, g.RebalanceMaxNs)
		commits += g.Commits
		stale += g.StaleCommits
	}
	var facts []labelled
	if n > 0 {
		facts = append(facts, labelled{"rebalances", fmt.Sprintf("%s · longest %s until every partition had a reader again", count(n), duration(float64(longest)))})
	}
	if commits+stale > 0 {
		text := count(commits)
		if stale > 0 {
			text += " · not sent, their partition was another member's by then: " + count(stale)
		}
		facts = append(facts, labelled{"commits", text})
	}
	return facts
}

// lagLines are the lags by partition of a run, as the moments of its timeline have them: one for
// each column, by the end of a window. None when there are too many to tell apart.
func (p *point) lagLines(run *results.Run, t *timeline, rows []results.TimelineRow) (byRow [][]float64) {
	lags, err := p.source.dir.ReadLags(run)
	if err != nil {
		p.source.note("lag of %s run %d: %v", p.id, run.Repeat+1, err)
		return nil
	}
	if lags == nil || len(lags.Columns) < 2 || len(lags.Columns) > mostPartitions {
		return nil
	}
	for _, c := range lags.Columns {
		t.partitions = append(t.partitions, partitionName(c, lags.Columns))
	}
	at := make(map[int64][]int64, len(lags.Rows))
	for _, row := range lags.Rows {
		at[row.EndNs] = row.Messages
	}
	byRow = make([][]float64, len(rows))
	for i := range rows {
		messages, known := at[rows[i].StartNs+rows[i].LengthNs]
		for j := range lags.Columns {
			v := math.NaN()
			if known && messages[j] >= 0 {
				v = float64(messages[j])
			}
			byRow[i] = append(byRow[i], v)
		}
	}
	return byRow
}

// partitionName is a column's name, as short as the others allow; groups go by their order.
func partitionName(c results.LagColumn, all []results.LagColumn) string {
	name := fmt.Sprint(c.Partition)
	topics, groups := map[string]bool{}, []string{}
	for _, other := range all {
		topics[other.Topic] = true
		if !slices.Contains(groups, other.Group) {
			groups = append(groups, other.Group)
		}
	}
	if len(topics) > 1 {
		name = c.Topic + "/" + name
	}
	if len(groups) > 1 {
		name = fmt.Sprintf("g%d %s", slices.Index(groups, c.Group)+1, name)
	}
	return name
}
