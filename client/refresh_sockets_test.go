package client

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// socketCount is a dialer that counts what it opens.
type socketCount struct{ n atomic.Int64 }

func (s *socketCount) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.n.Add(1)
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// sendToAll sends a message to every partition, so that every leader has its connection.
func sendToAll(t *testing.T, p *SyncProducer, topic string, partitions int) {
	msgs := make([]*ProducerMessage, partitions)
	for i := range msgs {
		msgs[i] = &ProducerMessage{Topic: topic, Partition: int32(i), Value: []byte("x")}
	}
	require.NoError(t, p.SendMessages(msgs))
}

// refreshUnderLoad sends all the while that metadata is refreshed, by itself and by others, at
// least n times, and requires that none of it opened a socket.
func refreshUnderLoad(t *testing.T, c *Client, sockets *socketCount, topic string, partitions int, n int64) {
	p, err := NewSyncProducerFromClient(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close(context.Background())) }()
	sendToAll(t, p, topic, partitions)
	opened := sockets.n.Load()
	require.Positive(t, opened, "the dialer is the one in use")
	rounds := func() int64 {
		c.refresh.mu.Lock()
		defer c.refresh.mu.Unlock()
		return c.refresh.rounds
	}
	for from := rounds(); rounds() < from+n; {
		require.NoError(t, c.RefreshMetadata(context.Background(), topic))
		sendToAll(t, p, topic, partitions)
	}
	require.Equal(t, opened, sockets.n.Load(), "sockets")
}

// refreshingConfig refreshes often, waiting for nothing.
func refreshingConfig(sockets *socketCount) *Config {
	cfg := NewConfig()
	cfg.Producer.Partitioner = "manual"
	cfg.Net.Dialer = sockets.dial
	cfg.Metadata.RefreshFrequency = 5 * time.Millisecond
	cfg.Metadata.Retry.Backoff, cfg.Metadata.Retry.MaxBackoff = time.Millisecond, time.Millisecond
	return cfg
}

func TestRefreshOpensNoSocket(t *testing.T) {
	c, err := broker.Start(broker.Options{Nodes: 3})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.CreateTopic("t", 6, nil))
	sockets := new(socketCount)
	cl, err := NewClient(c.Bootstrap(), refreshingConfig(sockets))
	require.NoError(t, err)
	defer cl.Close()
	refreshUnderLoad(t, cl, sockets, "t", 6, 50)
	_, accepted := c.Connections()
	require.Equal(t, sockets.n.Load(), accepted, "as the brokers count")
}
