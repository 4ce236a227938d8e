//go:build kafka

package client

import (
	"testing"

	"github.com/kbench/kbench/workloads/run/kafka/kafkatest"
)

func TestRealRefreshOpensNoSocket(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		sockets := new(socketCount)
		b := newRealBed(t, kafkatest.Shared(t, nodes), func(c *Config) { *c = *refreshingConfig(sockets) })
		refreshUnderLoad(t, b.c, sockets, b.topic(t, 6, nil), 6, 50)
	}
}
