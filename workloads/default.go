package workloads

import (
	"time"

	"github.com/kbench/kbench/workloads/payload"
)

// Default is a workload with every default in place: one producer in a closed loop for ten
// seconds after two of warm-up. It is complete but for a name.
func Default() Definition {
	return Definition{
		Seed:      1,
		Topics:    Topics{Count: 1, Partitions: 6},
		Producers: Producers{Count: 1, RateOf: OfAll, Schedule: Schedule{Kind: "constant"}, Form: "callback", Await: "acked", Pacer: "auto", Run: 256},
		Consumers: Consumers{Groups: 1, Mode: "partition", Form: "batch", From: "run", Commit: "interval"},
		Payload: Payload{
			Kind: payload.KindRandom, Size: 100, Compressibility: 0.5, Stamp: "auto",
			Sizes:     Sizes{Kind: payload.SizesFixed, Skew: 1.1},
			Delimiter: "\n", Order: payload.OrderSequence,
			Keys: Keys{Kind: "none", Size: 16, N: 10_000, Skew: 1.1},
		},
		Phases: Phases{
			WarmUp: 2 * time.Second, Duration: 10 * time.Second, Drain: 30 * time.Second, Interval: time.Second,
		},
		Validity: Validity{
			MinRateShare: 0.99, MaxLateness: 2 * time.Millisecond, MaxLatenessShare: 0.1,
			MaxCPUShare: 0.85, MaxOwnShare: 0.5, MaxStolenShare: 0.02, MaxPause: 100 * time.Millisecond,
			MaxGCPauseShare: 0.1, MaxHostCPUShare: 0.95,
			MaxCeilingShare: 0.7, MaxLittleError: 0.05,
		},
		Design: Design{Kind: DesignMatrix},
		Repeat: 1,
	}
}
