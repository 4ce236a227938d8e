package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCircuit is the state machine alone: what it says after a row of outcomes at given times.
func TestCircuit(t *testing.T) {
	type step struct {
		at   time.Duration
		good bool
	}
	bad := func(at ...time.Duration) (out []step) {
		for _, a := range at {
			out = append(out, step{a, false})
		}
		return out
	}
	const s = time.Second
	for _, tc := range []struct {
		name  string
		steps []step
		at    time.Duration
		open  bool
	}{
		{"closed at first", nil, 0, false},
		{"two failures do not open it", bad(0, s), s, false},
		{"three in a row open it", bad(0, s, 2*s), 2 * s, true},
		{"a success in between begins the count anew", []step{{0, false}, {s, false}, {s, true}, {2 * s, false}, {3 * s, false}}, 3 * s, false},
		{"it stays open for ten seconds", bad(0, 0, 0), 10*s - 1, true},
		{"and is half open then", bad(0, 0, 0), 10 * s, false},
		{"failures while it is open do not keep it open", bad(0, 0, 0, 9*s), 10 * s, false},
		{"one failure opens it again when half open", bad(0, 0, 0, 11*s), 20 * s, true},
		{"for ten seconds more", bad(0, 0, 0, 11*s), 21 * s, false},
		{"one success closes it when half open", append(bad(0, 0, 0), step{10 * s, true}), 10 * s, false},
		{"then it takes three failures again", append(append(bad(0, 0, 0), step{10 * s, true}), bad(11*s, 12*s)...), 12 * s, false},
		{"a success while it is open closes it too", append(bad(0, 0, 0), step{s, true}), s, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c circuit
			base := time.Now()
			for _, st := range tc.steps {
				if st.good {
					c.succeeded()
				} else {
					c.failed(base.Add(st.at), ErrNoBrokers)
				}
			}
			require.Equal(t, tc.open, c.open(base.Add(tc.at)))
		})
	}
	var c circuit
	now := time.Now()
	for i, opens := range []bool{false, false, true, false} {
		require.Equal(t, opens, c.failed(now, ErrNoBrokers), "failure %d", i)
	}
	err := c.failure("orders", 3)
	require.ErrorIs(t, err, ErrCircuitOpen)
	require.ErrorIs(t, err, ErrNoBrokers, "the last cause is kept")
	require.Equal(t, "circuit open", ErrorKind(err))
}

// An unknown topic is looked up three times; then its messages fail at once for ten seconds, and
// one look-up decides.
func TestTheTopicsCircuit(t *testing.T) {
	b := &fakeBroker{partitions: 1, noTopic: true}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Metadata.Retry = RetryConfig{Max: 1, Backoff: time.Second, MaxBackoff: time.Second}
		p := b.producer(t, cfg)
		send := func() (took time.Duration, err error) {
			before := time.Now()
			done := make(chan error, 1)
			require.NoError(t, p.Produce(context.Background(), to(0, "x"), func(_ *ProducerMessage, err error) { done <- err }))
			err = <-done
			return time.Since(before), err
		}
		for range circuitFailures {
			took, err := send()
			require.ErrorIs(t, err, ErrTopicUnknown)
			require.NotErrorIs(t, err, ErrCircuitOpen)
			require.GreaterOrEqual(t, took, time.Second, "it was looked up, with the retries of metadata.retry")
		}
		asked := b.came(3)
		for range 10 {
			took, err := send()
			var open *CircuitOpenError
			require.ErrorAs(t, err, &open)
			require.ErrorIs(t, err, ErrTopicUnknown)
			require.Equal(t, int32(-1), open.Partition)
			require.Zero(t, took)
			time.Sleep(900 * time.Millisecond)
		}
		require.Equal(t, asked, b.came(3), "nothing was asked meanwhile")
		time.Sleep(time.Second) // ten seconds are over
		took, err := send()
		require.NotErrorIs(t, err, ErrCircuitOpen)
		require.GreaterOrEqual(t, took, time.Second, "looked up again")
		_, err = send()
		require.ErrorIs(t, err, ErrCircuitOpen, "one failure opens it again")
		b.set(func() { b.noTopic = false })
		time.Sleep(circuitOpen)
		_, err = send()
		require.NoError(t, err, "one success closes it")
		require.NoError(t, closeWithin(t, p, time.Minute))
	})
}

// A topic that becomes known by any other way is used at once, circuit or not.
func TestTheTopicsCircuitClosesWithTheMetadata(t *testing.T) {
	b := &fakeBroker{partitions: 1, noTopic: true}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		p := b.producer(t, b.config())
		out := newHeard(start)
		for _, v := range []string{"a", "b", "c", "d"} {
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{to(0, v)}, out)
			require.NoError(t, err)
			require.NoError(t, p.Flush(context.Background()))
		}
		_, err := out.of("d")
		require.ErrorIs(t, err, ErrCircuitOpen)
		b.set(func() { b.noTopic = false })
		require.NoError(t, p.client.RefreshMetadata(context.Background(), "t"))
		_, err = p.ProduceRun(context.Background(), []*ProducerMessage{to(0, "e")}, out)
		require.NoError(t, err)
		require.NoError(t, p.Flush(context.Background()))
		_, err = out.of("e")
		require.NoError(t, err)
		require.NoError(t, closeWithin(t, p, time.Minute))
	})
}

// Nobody waits for room in a partition whose leader cannot be found: what has its place there
// keeps it and arrives in order, what finds none fails at once, and other partitions go on.
func TestThePartitionsCircuit(t *testing.T) {
	b := &fakeBroker{partitions: 2, leaderless: map[int32]bool{0: true}}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.Partitioner = "manual"
		cfg.ChannelBufferSize = 4
		cfg.Producer.Flush.MaxMessages = 2
		cfg.Producer.Retry.Backoff, cfg.Producer.Retry.MaxBackoff = time.Second, time.Second
		p := b.producer(t, cfg)
		out := newHeard(start)
		send := func(m *ProducerMessage) {
			_, err := p.ProduceRun(context.Background(), []*ProducerMessage{m}, out)
			require.NoError(t, err)
		}
		// What partition 0 holds (two batches of two, and its queue) and the queue of the topic
		// behind it, before any circuit can be open.
		var mine []string
		for i := range 12 {
			v := string(rune('a' + i))
			mine = append(mine, v)
			send(to(0, v))
		}
		require.Less(t, time.Since(start), time.Second, "all of it had room")
		send(to(1, "other")) // has to wait until nobody waits for partition 0 any more
		synctest.Wait()
		time.Sleep(4 * time.Second) // three failed look-ups
		synctest.Wait()
		at, err := out.of("other")
		require.NoError(t, err)
		require.NotZero(t, at, "the other partition goes on")
		for _, v := range []string{"x", "y"} { // no room, and no wait
			before := time.Now()
			send(to(0, v))
			synctest.Wait()
			_, err = out.of(v)
			require.ErrorIs(t, err, ErrCircuitOpen)
			var open *CircuitOpenError
			require.True(t, errors.As(err, &open) && open.Partition == 0)
			require.Zero(t, time.Since(before))
			send(to(1, "1"+v))
			synctest.Wait()
			at, err = out.of("1" + v)
			require.NoError(t, err)
			require.NotZero(t, at)
		}
		found := time.Now()
		b.set(func() { b.leaderless = map[int32]bool{} })
		require.NoError(t, p.Flush(context.Background()))
		require.Less(t, time.Since(found), 3*time.Second, "the look-ups went on: nothing waits for the circuit's ten seconds")
		var want []string
		for _, v := range mine {
			_, err := out.of(v)
			if err == nil {
				want = append(want, v)
			} else {
				require.ErrorIs(t, err, ErrCircuitOpen)
			}
		}
		require.Equal(t, want, b.log[0], "what had its place kept it, in order")
		require.GreaterOrEqual(t, len(want), 8)
		send(to(0, "z"))
		require.NoError(t, p.Flush(context.Background()))
		_, err = out.of("z")
		require.NoError(t, err, "closed again")
		require.NoError(t, closeWithin(t, p, time.Minute))
	})
}
