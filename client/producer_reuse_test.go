package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsAreKeptUnlessTheyWereLarge(t *testing.T) {
	for batches, kept := range map[int]int{1: 1, keptBatches: 1, keptBatches + 1: 0} {
		b := new(brokerProducer)
		b.reuse(&request{batches: make([]*batch, batches)})
		require.Len(t, b.idle, kept, "%d batches", batches)
	}
}
