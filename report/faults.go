package report

import (
	"fmt"

	"github.com/kbench/kbench/results"
)

// mostFaults is how many faults a summary has lines for.
const mostFaults = 20

// faultFacts say what each fault was and did.
func faultFacts(run *results.Run) []labelled {
	var facts []labelled
	for i, f := range run.Faults {
		if i == mostFaults {
			facts = append(facts, labelled{"", "… and " + plural(len(run.Faults)-i, "more fault")})
			break
		}
		label := fmt.Sprintf("fault %d", i+1)
		if f.Skipped != "" {
			facts = append(facts, labelled{label, f.Given + " did not happen: " + f.Skipped})
			continue
		}
		text := "at " + digits(float64(f.AtNs)/1e9, 3) + " s"
		if f.DurationNs > 0 {
			text += ", for " + duration(float64(f.DurationNs))
		}
		facts = append(facts, labelled{label, text + ": " + f.Text}, labelled{"", recoveryText(&f)})
	}
	if len(facts) > 0 {
		facts = append(facts, labelled{"", fmt.Sprintf("recovered: %d windows in a row with at least %s of the median rate before and p99 of at most %d times that before; affected: slower than that, failed or unknown",
			results.RecoveredWindows, share(results.RecoveredRateShare), int(results.RecoveredP99Factor))})
	}
	return facts
}

// recoveryText is what a fault did.
func recoveryText(f *results.Fault) string {
	text := ""
	switch {
	case !f.Recovered:
		text = "not recovered: " + f.NotRecovered
	case f.RecoverNs == 0:
		text = "the load did not leave its bounds"
	default:
		text = "recovered " + duration(float64(f.RecoverNs)) + " after it began"
	}
	text += " · " + count(f.Affected) + " messages affected"
	if f.FailedMessages > 0 {
		text += ", " + count(f.FailedMessages) + " of them failed or unknown"
	}
	if b := f.Before; b != nil {
		text += fmt.Sprintf(" · before %s msg/s and %s p99 %s", quantity(b.MessagesPerSecond), f.Series, duration(float64(b.P99Ns)))
		if f.WorstP99Ns > 0 {
			text += fmt.Sprintf(", then down to %s and up to %s", quantity(f.LowestRate), duration(float64(f.WorstP99Ns)))
		}
	}
	return text
}
