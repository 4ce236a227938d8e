package client

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With acks=0 nothing is answered: no slot is held, and no offset is known.
func TestP27NoSlotIsHeldWithoutAcks(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests, cfg.Net.ReadTimeout = AcksNone, 1, time.Second
		var infos []RequestInfo
		var mu sync.Mutex
		cfg.Producer.OnRequest = func(i RequestInfo) { mu.Lock(); infos = append(infos, i); mu.Unlock() }
		p := b.producer(t, cfg)
		for range 20 {
			m := to(0, "x")
			m.Offset = 7
			require.NoError(t, p.Produce(context.Background(), m, nil))
			require.NoError(t, p.Flush(context.Background()))
			require.Equal(t, int64(-1), m.Offset)
			require.Equal(t, int32(0), m.Partition)
		}
		require.Zero(t, time.Since(start), "nothing was waited for")
		synctest.Wait()
		require.Len(t, b.log[0], 20)
		require.Len(t, infos, 20)
		require.Equal(t, infos[0].Written, infos[0].Read)
		time.Sleep(time.Hour)
		require.Zero(t, p.Stats().Dropped, "the connection is well")
	})
}

// A broker that refuses what was sent with acks=0 can only close the connection. That is reported,
// once, also when nothing is sent any more; and what is sent later goes over a new connection.
func TestP27ADroppedConnectionIsReported(t *testing.T) {
	for _, later := range []bool{false, true} {
		b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling { return ruling{hangUp: n == 0} }}
		onPipes(t, b, func(t *testing.T, start time.Time) {
			var mu sync.Mutex
			var reported []error
			cfg := b.config()
			cfg.Producer.RequiredAcks = AcksNone
			cfg.Producer.OnRequest = func(i RequestInfo) {
				mu.Lock()
				defer mu.Unlock()
				if i.Err != nil {
					reported = append(reported, i.Err)
				}
			}
			p := b.producer(t, cfg)
			require.NoError(t, p.Produce(context.Background(), to(0, "lost"), nil))
			require.NoError(t, p.Flush(context.Background()))
			synctest.Wait()
			if later {
				out := b.send(t, p, start, to(0, "later"))
				synctest.Wait()
				_, err := out.of("later")
				require.NoError(t, err)
				require.Equal(t, []string{"later"}, b.log[0])
			}
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, reported, 1)
			require.ErrorIs(t, reported[0], ErrDropped)
			require.EqualValues(t, 1, p.Stats().Dropped)
		})
	}
}

// Where nothing may be tried again, a message for a connection that is closed fails: writing it
// nowhere is no success.
func TestP27AClosedConnectionIsAnErrorForLaterSends(t *testing.T) {
	b := &fakeBroker{partitions: 1}
	onPipes(t, b, func(t *testing.T, start time.Time) {
		cfg := b.config()
		cfg.Producer.RequiredAcks, cfg.Producer.Retry.Max = AcksNone, 0
		p := b.producer(t, cfg)
		b.send(t, p, start, to(0, "known"))
		synctest.Wait()
		b.server.Close() // for good
		synctest.Wait()
		out := b.send(t, p, start, to(0, "later"))
		_, err := out.of("later")
		require.Error(t, err)
		require.EqualValues(t, 1, p.Stats().Dropped)
		require.Equal(t, []string{"known"}, b.log[0])
	})
}

// The broker's throttle time passes before the next request is written, answers are dealt with at
// once all the same (KIP-219), and who looks at requests is told.
func TestP28ThrottledForTheTimeTheBrokerAsks(t *testing.T) {
	for _, inFlight := range []int{1, 5} {
		b := &fakeBroker{partitions: 1, answer: func(n int, _ *kmsg.ProduceRequest) ruling {
			if n == 0 {
				return ruling{throttle: 3 * time.Second}
			}
			return ruling{}
		}}
		onPipes(t, b, func(t *testing.T, start time.Time) {
			var mu sync.Mutex
			var throttles []time.Duration
			cfg := b.config()
			cfg.Net.MaxOpenRequests = inFlight
			cfg.Producer.OnRequest = func(i RequestInfo) { mu.Lock(); throttles = append(throttles, i.Throttle); mu.Unlock() }
			p := b.producer(t, cfg)
			first := b.send(t, p, start, to(0, "a"))
			at, err := first.of("a")
			require.NoError(t, err)
			require.Zero(t, at, "the answer itself is not held back")
			time.Sleep(time.Second)
			out := b.send(t, p, start, to(0, "b"))
			at, err = out.of("b")
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, at)
			require.Equal(t, 3*time.Second, b.batches()[1].at)
			out = b.send(t, p, start, to(0, "c"))
			at, _ = out.of("c")
			require.Equal(t, 3*time.Second, at, "once")
			require.Equal(t, []time.Duration{3 * time.Second, 0, 0}, throttles)
		})
	}
}
