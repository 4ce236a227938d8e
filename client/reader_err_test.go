package client

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// Err is what calls for messages return for good, before anybody has called.
func TestErrOfAReader(t *testing.T) {
	c, err := broker.Start(broker.Options{}) // sessions of six seconds at least
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.CreateTopic("in", 1, nil))
	cfg := NewConfig()
	cfg.Consumer.Group.SessionTimeout, cfg.Consumer.Group.HeartbeatInterval = 2*time.Second, 500*time.Millisecond
	cl, err := NewClient(c.Bootstrap(), cfg)
	require.NoError(t, err)

	refused, err := cl.NewReader(ReaderConfig{GroupID: "g", Topic: "in"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return refused.Err() != nil }, patience, time.Millisecond)
	require.ErrorIs(t, refused.Err(), wire.ErrInvalidSessionTimeout)
	_, err = refused.FetchMessage(within(t))
	require.Equal(t, refused.Err(), err)
	require.NoError(t, refused.Close())
	require.Equal(t, io.EOF, refused.Err())

	fine, err := cl.NewReader(ReaderConfig{Topic: "in"})
	require.NoError(t, err)
	require.NoError(t, fine.Err())
	require.NoError(t, cl.Close())
	require.Equal(t, ErrClosed, fine.Err())
	require.NoError(t, fine.Close())
}
