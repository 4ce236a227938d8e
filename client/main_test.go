package client

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/kbench/kbench/workloads/broker"
)

func TestMain(m *testing.M) {
	broker.MaybeServeChild()
	goleak.VerifyTestMain(m)
}
