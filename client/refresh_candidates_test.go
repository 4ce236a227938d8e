package client

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Who is asked for metadata first: a node that is connected and has nothing to do, then one that is
// busy, then the others, and the seeds last.
func TestMetadataIsAskedOfWhoAnswersFirst(t *testing.T) {
	c := cluster(t, 4, 1)
	cl, err := NewClientContext(within(t), c.Bootstrap()[:1], quickConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close()) }()
	nodes := map[int32]*Broker{}
	for _, b := range cl.Brokers() {
		nodes[b.ID()] = b
	}
	require.Len(t, nodes, 4)
	seed := cl.seeds[0]
	var others []*Broker
	for _, b := range nodes {
		if b != seed && b.Addr() != seed.Addr() {
			others = append(others, b)
		}
	}
	idle, busy := others[0], others[1]
	require.NoError(t, idle.Open(within(t)))
	key := int16(kmsg.ListOffsets)
	c.StallKey(key, 0)
	done := make(chan error, 1)
	go func() {
		_, err := busy.Request(within(t), kmsg.NewPtrListOffsetsRequest())
		done <- err
	}()
	require.NoError(t, c.AwaitHeld(within(t), key, 1))
	for range 20 { // equals come in random order
		got := cl.candidates()
		require.Less(t, slices.Index(got, idle), slices.Index(got, busy))
		for _, b := range others[2:] {
			require.Less(t, slices.Index(got, busy), slices.Index(got, b), "a node without a connection")
		}
	}
	c.Resume()
	require.NoError(t, <-done)
}
