//go:build kafka

package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

// A real node tells what it was started with, and no default.
func TestKafkaBrokerSettings(t *testing.T) {
	b := newRealBed(t, kafkatest.Shared(t, 1), nil)
	node := b.c.Brokers()[0]
	settings, more, err := node.Settings(b.ctx)
	require.NoError(t, err)
	require.Zero(t, more)
	require.NotEmpty(t, settings["log.dirs"], "%v", settings)
	require.NotContains(t, settings, "log.retention.check.interval.ms", "a default")
	for name := range settings {
		require.NotContains(t, strings.ToLower(name), "password")
	}
}
