package client

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/kbench/kbench/workloads/broker"
)

func TestMain(m *testing.M) {
	broker.MaybeServeChild()
	// Those that run side by side are groups on a real Kafka, which wait for heartbeats and sessions
	// rather than use the CPU.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
