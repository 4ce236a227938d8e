package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads/run"
)

// tally counts outcomes.
type tally struct{ n int }

func (c *tally) Decided(batch []*run.Message, _, _ int64) { c.n += len(batch) }
func (c *tally) Request(string, int64, int64)             {}

// readBack has the channel form read n messages back that all ended with err.
func readBack(n int, err error) (*channelProducer, *tally) {
	out := &tally{}
	p := &channelProducer{read: make(chan struct{}, 1)}
	p.target, p.out = &Target{o: Options{Clock: run.NewClock()}}, out
	from := make(chan *client.ProducerMessage, n)
	for _, m := range p.NewMessages(n) {
		from <- &m.Handle.(*slot).client
	}
	close(from)
	readAll(p, from, func(m *client.ProducerMessage) (*client.ProducerMessage, error) { return m, err })
	return p, out
}

// A message that comes back costs the channel form no memory: twice as many cost as many allocations,
// made while the channel is read.
func TestReadingBackAllocatesNothing(t *testing.T) {
	allocs := func(n int) float64 {
		return testing.AllocsPerRun(10, func() {
			_, out := readBack(n, nil)
			require.Equal(t, n, out.n)
		})
	}
	few, many := allocs(1000), allocs(2000)
	require.InDelta(t, few, many, 20)
}

// The first message that fails the transaction is the reason Send gives, as it was told.
func TestWhatFailedTheTransaction(t *testing.T) {
	first := fmt.Errorf("%w: the first", client.ErrTransactionFailed)
	p, _ := readBack(300, first)
	require.Equal(t, first, *p.failed.Load())
	p.notice(fmt.Errorf("%w: the second", client.ErrTransactionFailed))
	p.notice(client.ErrClosed)
	require.Equal(t, first, *p.failed.Load())
	_, err := p.Send(t.Context(), nil)
	require.ErrorIs(t, err, run.ErrTransactionFailed)
	require.ErrorIs(t, err, first)

	p, _ = readBack(3, client.ErrClosed)
	require.Nil(t, p.failed.Load())
}
