package synthetic_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
	"github.com/kbench/kbench/workloads/run/synthetic"
)

// BenchmarkEngineNull is the engine with nothing behind it: the ceiling of what it can do, by
// producers and size of value. An operation is a message; allocations are per message.
func BenchmarkEngineNull(b *testing.B) {
	for _, producers := range []int{1, runtime.GOMAXPROCS(0)} {
		for _, size := range []int{0, 100, 1024} {
			b.Run(fmt.Sprintf("producers=%d/size=%d", producers, size), func(b *testing.B) {
				clock := run.NewClock()
				stamp := "value"
				if size == 0 {
					stamp = "none"
				}
				b.ReportAllocs()
				out, err := run.Execute(b.Context(), run.Spec{Clock: clock, Target: synthetic.NewNull(clock),
					Definition: workloads.Definition{
						Producers: workloads.Producers{Count: producers, Messages: int64(b.N)},
						Payload:   workloads.Payload{Size: size, Stamp: stamp},
						Phases:    workloads.Phases{Drain: time.Second},
					}})
				require.NoError(b, err)
				b.ReportMetric(out.Run.Rates.MessagesPerSecond, "messages/s")
				b.ReportMetric(out.Run.Generator.CPUNsPerMessage, "cpu-ns/op")
			})
		}
	}
}
