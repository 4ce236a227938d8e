package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
)

// second is a window of a second with messages of a latency each, of which some are slower and some failed.
func second(i int, messages, slow, failed int64, slowest time.Duration) results.Window {
	h := hist.New()
	h.RecordN(int64(time.Millisecond), messages-slow)
	h.RecordN(int64(slowest), slow)
	return results.Window{StartNs: int64(i) * 1e9, LengthNs: 1e9, Acked: messages, Failed: failed,
		Series: map[string]*hist.Histogram{results.SeriesResponse: h}}
}

func TestRecoveries(t *testing.T) {
	const calm, stalled = "c", "s"
	for _, tc := range []struct {
		sentence string
		windows  string // c: as always; s: stalled; f: half of them failed; l: a little slower
		faults   []results.Fault
		want     []results.Fault
	}{
		{"a stall of two seconds, and calm again", "ccccsscccc", []results.Fault{{AtNs: 4e9, DurationNs: 2e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 2e9, Affected: 2000}}},
		{"from within a window the time counts from its own begin", "ccccsscccc", []results.Fault{{AtNs: 4.25e9, DurationNs: 1e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 1.75e9, Affected: 2000}}},
		{"three windows in a row are needed", "ccccsccscccc", []results.Fault{{AtNs: 4e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 4e9, Affected: 2000}}},
		{"but at the end those that are left do", "ccccscc", []results.Fault{{AtNs: 4e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 1e9, Affected: 1000}}},
		{"what is within the bounds is no harm", "cccclllccc", []results.Fault{{AtNs: 4e9, DurationNs: 3e9}},
			[]results.Fault{{Recovered: true}}},
		{"failures lower the rate and are affected", "ccccffccc", []results.Fault{{AtNs: 4e9, DurationNs: 2e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 2e9, Affected: 1000, FailedMessages: 1000}}},
		{"no recovery before the end", "ccccssss", []results.Fault{{AtNs: 4e9, DurationNs: 4e9}},
			[]results.Fault{{NotRecovered: "the measured phase ended before", Affected: 4000}}},
		{"none before the next fault either", "ccccssssccc", []results.Fault{{AtNs: 4e9, DurationNs: 1e9}, {AtNs: 6e9, DurationNs: 2e9}},
			[]results.Fault{{NotRecovered: "the next fault began before", Affected: 2000}, {Recovered: true, RecoverNs: 2e9, Affected: 2000}}},
		{"windows that an earlier fault touched are no measure", "ccssccccsccc", []results.Fault{{AtNs: 2e9, DurationNs: 2e9}, {AtNs: 8e9, DurationNs: 1e9}},
			[]results.Fault{{Recovered: true, RecoverNs: 2e9, Affected: 2000}, {Recovered: true, RecoverNs: 1e9, Affected: 1000}}},
		{"nothing before it", "sccc", []results.Fault{{AtNs: 0, DurationNs: 1e9}},
			[]results.Fault{{NotRecovered: "no window before it to compare with"}}},
		{"one that did not happen", "cccc", []results.Fault{{Skipped: "why"}}, []results.Fault{{Skipped: "why"}}},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			var windows []results.Window
			for i, kind := range tc.windows {
				switch string(kind) {
				case calm:
					windows = append(windows, second(i, 1000, 0, 0, 0))
				case stalled:
					windows = append(windows, second(i, 1000, 1000, 0, time.Second))
				case "l":
					windows = append(windows, second(i, 1000, 1000, 0, 1800*time.Microsecond))
				case "f":
					windows = append(windows, second(i, 500, 0, 500, 0))
				}
			}
			recoveries(tc.faults, windows, watched{series: results.SeriesResponse})
			for i, got := range tc.faults {
				want := tc.want[i]
				require.Equal(t, want.Skipped, got.Skipped)
				require.Equal(t, want.Recovered, got.Recovered, "%s", got.NotRecovered)
				require.Equal(t, want.RecoverNs, got.RecoverNs)
				require.Equal(t, want.NotRecovered, got.NotRecovered)
				require.Equal(t, want.Affected, got.Affected, "affected")
				require.Equal(t, want.FailedMessages, got.FailedMessages)
			}
		})
	}
}

func TestFaultsAreNotedInTheirWindows(t *testing.T) {
	windows := []results.Window{{StartNs: 0, LengthNs: 1e9}, {StartNs: 1e9, LengthNs: 1e9}, {StartNs: 2e9, LengthNs: 1e9}, {StartNs: 3e9, LengthNs: 1e9}}
	noteFaults([]results.Fault{{Kind: "stall", AtNs: 1.5e9, DurationNs: 1e9}, {Kind: "cut", AtNs: 2e9}, {Kind: "delay", Skipped: "why"}}, windows)
	var got []string
	for _, w := range windows {
		got = append(got, w.Faults)
	}
	require.Equal(t, []string{"", "stall", "stall+cut", ""}, got)
}
