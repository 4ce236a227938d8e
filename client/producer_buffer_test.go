package client

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who waits for room sleeps until somebody gives some back, and does not wake itself.
func TestWaitingForRoomIsNoBusyLoop(t *testing.T) {
	b := &bufferBound{maxMessages: 1}
	ctx := context.Background()
	_, err := b.acquire(ctx, nil, 1, 10)
	require.NoError(t, err)
	got := make(chan bool)
	go func() { // ends when there is room, below
		waited, err := b.acquire(ctx, nil, 1, 10)
		got <- waited && err == nil
	}()
	room := func() <-chan struct{} {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.room
	}
	for room() == nil {
		runtime.Gosched()
	}
	first := room()
	for range 10_000 {
		runtime.Gosched()
	}
	require.True(t, first == room(), "the same wait all the time")
	b.release(1, 10)
	require.True(t, <-got)
}
