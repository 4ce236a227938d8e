package synthetic_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// told notes what a run asks of its faults.
type told struct {
	mu     sync.Mutex
	calls  []string
	fail   error
	length time.Duration // that Begin takes
}

func (d *told) Begin(ctx context.Context, i int) (string, error) {
	if d.length > 0 {
		select {
		case <-time.After(d.length):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "begin "+string(rune('0'+i)))
	return "as it was told", d.fail
}

func (d *told) End(i int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "end "+string(rune('0'+i)))
	return nil
}

func faulty(length time.Duration, faults ...workloads.Fault) workloads.Definition {
	d := definition(1000, length)
	d.Faults = faults
	return d
}

// A stall of two seconds at ten: two seconds until the load is as before, and the messages of these two
// seconds affected.
func TestFaultsHappenAtTheirTimes(t *testing.T) {
	d := faulty(20*time.Second, workloads.Fault{At: 10 * time.Second, For: 2 * time.Second, Kind: workloads.FaultStall},
		workloads.Fault{At: 15 * time.Second, Kind: workloads.FaultCut}, workloads.Fault{At: 30 * time.Second, Kind: workloads.FaultCut})
	var who told
	out, err := execute(t, run.Spec{Definition: d, Disturber: &who},
		synthetic.Script{Latency: ms, Stalls: []synthetic.Stall{{Start: 10 * time.Second, Length: 2 * time.Second}}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"begin 0", "end 0", "begin 1"}, who.calls, "the third would have been too late")
	faults := out.Run.Faults
	require.Len(t, faults, 3)
	require.Equal(t, 10*time.Second, time.Duration(faults[0].AtNs))
	require.Equal(t, 2*time.Second, time.Duration(faults[0].DurationNs))
	require.True(t, faults[0].Recovered)
	require.Equal(t, 2*time.Second, time.Duration(faults[0].RecoverNs))
	require.InDelta(t, 2000, faults[0].Affected, 5)
	require.Equal(t, results.FaultBase{MessagesPerSecond: 1000, P99Ns: faults[0].Before.P99Ns, Windows: 10}, *faults[0].Before)
	near(t, ms, faults[0].Before.P99Ns, "before")
	require.True(t, faults[1].Recovered)
	require.Zero(t, faults[1].RecoverNs+faults[1].Affected, "nothing came of it")
	require.Equal(t, "the measured phase ended before", faults[2].Skipped)
	var marks []results.Event
	for _, e := range out.Run.Events {
		if e.Kind == "fault" {
			marks = append(marks, e)
		}
	}
	require.Equal(t, []results.Event{{AtNs: 10e9, DurationNs: 2e9, Kind: "fault", Text: "as it was told"}, {AtNs: 15e9, Kind: "fault", Text: "as it was told"}}, marks)
	require.Equal(t, "stall", out.Windows[11].Faults)
	require.Empty(t, out.Windows[14].Faults)
}

// A fault that cannot be made ends the run: it would not be the one that was asked for.
func TestAFaultThatFails(t *testing.T) {
	who := told{fail: errors.New("no such broker")}
	d := faulty(20*time.Second, workloads.Fault{At: 2 * time.Second, For: time.Second, Kind: workloads.FaultStall})
	out, err := execute(t, run.Spec{Definition: d, Disturber: &who}, synthetic.Script{Latency: ms}, nil)
	require.ErrorContains(t, err, "fault 1 (at=2s kind=stall for=1s")
	require.ErrorContains(t, err, "no such broker")
	require.Equal(t, []string{"begin 0"}, who.calls)
	require.False(t, out.Run.Verdict.Valid)
	require.Equal(t, "no such broker", out.Run.Faults[0].Skipped)

	_, err = execute(t, run.Spec{Definition: d}, synthetic.Script{}, nil)
	require.ErrorContains(t, err, "Disturber")
}

// An interrupt ends a fault that lasts, and the run does not wait for it.
func TestAnInterruptEndsFaults(t *testing.T) {
	var who told
	d := faulty(time.Minute, workloads.Fault{At: time.Second, For: 40 * time.Second, Kind: workloads.FaultStall})
	out, err := execute(t, run.Spec{Definition: d, Disturber: &who}, synthetic.Script{Latency: ms},
		func(p run.Progress) bool { return p.Phase == run.PhaseMeasure && p.Elapsed > 5*time.Second })
	require.ErrorIs(t, err, run.ErrInterrupted)
	require.Equal(t, []string{"begin 0", "end 0"}, who.calls)
	require.Less(t, time.Duration(out.Run.Faults[0].DurationNs), 6*time.Second)
}

// A listed fault that moves the leader of a partition excuses that, until the load has recovered, and nothing else.
func TestAFaultExcusesItsOwnMovesAlone(t *testing.T) {
	const sec = int64(time.Second)
	for _, tt := range []struct {
		says    string
		kind    workloads.FaultKind
		moves   []run.Move
		reasons []string
	}{
		{"its own", workloads.FaultLeader, []run.Move{{Partition: 1, After: 9 * sec, At: 11 * sec}}, nil},
		{"another partition's at the same time", workloads.FaultLeader, []run.Move{{Partition: 0, After: 9 * sec, At: 11 * sec}},
			[]string{"leaders moved during the run: 1 of 2 partitions of t, limit 0"}},
		{"its own partition's, long after it", workloads.FaultLeader, []run.Move{{Partition: 1, After: 9 * sec, At: 11 * sec}, {Partition: 1, After: 15 * sec, At: 16 * sec}},
			[]string{"leaders moved during the run: 1 of 2 partitions of t, limit 0"}},
		{"a replica of another partition", workloads.FaultLeader, []run.Move{{Partition: 0, ISR: true, After: 9 * sec, At: 11 * sec}},
			[]string{"in-sync replicas were lost during the run: in 1 of 2 partitions of t, limit 0"}},
		{"a fault of another kind moves nothing", workloads.FaultCut, []run.Move{{Partition: 1, After: 9 * sec, At: 11 * sec}},
			[]string{"leaders moved during the run: 1 of 2 partitions of t, limit 0"}},
	} {
		topic := results.Topic{Name: "t", Partitions: 2}
		for _, m := range tt.moves {
			if m.ISR {
				topic.ISRShrunk = 1
			} else {
				topic.LeadersMoved = 1
			}
		}
		out, err := execute(t, run.Spec{Definition: faulty(20*time.Second, workloads.Fault{At: 10 * time.Second, Kind: tt.kind, Partition: 1}), Disturber: &told{}},
			synthetic.Script{Latency: ms, Topics: []results.Topic{topic}, Moves: tt.moves}, nil)
		require.NoError(t, err)
		require.True(t, out.Run.Faults[0].Recovered, tt.says)
		require.Equal(t, len(tt.reasons) == 0, out.Run.Verdict.Valid, tt.says)
		require.ElementsMatch(t, tt.reasons, out.Run.Verdict.Reasons, tt.says)
	}
}
