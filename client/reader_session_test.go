package client

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/internal/rawserver"
	"github.com/kbench/kbench/client/internal/wire"
	"github.com/kbench/kbench/workloads/broker"
)

// fetchLog notes every Fetch request that a cluster gets.
type fetchLog struct {
	mu  sync.Mutex
	all []kmsg.FetchRequest
}

func (b *readerBed) logFetches() *fetchLog {
	l := &fetchLog{}
	b.cluster.Observe(fetch.Key, func(_ int32, req kmsg.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		seen := *req.(*kmsg.FetchRequest)
		seen.Topics = slices.Clone(seen.Topics) // the broker fills names in
		l.all = append(l.all, seen)
	})
	return l
}

// since are the requests after the first n.
func (l *fetchLog) since(n int) []kmsg.FetchRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]kmsg.FetchRequest(nil), l.all[min(n, len(l.all)):]...)
}

func (l *fetchLog) await(t *testing.T, n int) int {
	require.Eventually(t, func() bool { return len(l.since(0)) >= n }, 10*time.Second, time.Millisecond)
	return len(l.since(0))
}

func named(req *kmsg.FetchRequest) (n int) {
	for _, t := range req.Topics {
		n += len(t.Partitions)
	}
	return n
}

// Mostly idle partitions are named once, and only those with something new after that.
func TestReaderFetchSession(t *testing.T) {
	const partitions = 200
	b := newReaderBed(t, broker.Options{}, partitions, func(c *Config) { c.Consumer.MaxWait = 20 * time.Millisecond })
	l := b.logFetches()
	var ids []int32
	for p := range int32(partitions) {
		ids = append(ids, p)
	}
	r := b.reader(ReaderConfig{Partitions: ids})
	seen := l.await(t, 5)
	all := l.since(0)
	require.Equal(t, partitions, named(&all[0]))
	require.Zero(t, all[0].SessionEpoch, "it asks for a session")
	require.GreaterOrEqual(t, all[0].Version, int16(fetch.FirstByID), "by topic id")
	for i, req := range all[1:] {
		require.Zero(t, named(&req), "nothing is new")
		require.EqualValues(t, i+1, req.SessionEpoch)
		require.NotZero(t, req.SessionID)
	}
	b.write(77, values(0, 10))
	b.expect(r, 0, 10)
	b.write(5, values(0, 3))
	b.expect(r, 0, 3)
	seen = l.await(t, seen+3)
	total := 0
	for _, req := range l.since(5)[:seen-5] {
		total += named(&req)
		require.LessOrEqual(t, named(&req), 1)
		require.Empty(t, req.ForgottenTopics)
	}
	require.Equal(t, 2, total, "each of the two is named once, with its new position")
	require.EqualValues(t, 1, r.Stats().Dials)
	require.Zero(t, r.Stats().Errors)
}

// Partitions that are assigned together are asked for together: the first of them does not hold the
// others up for a long poll.
func TestReaderAsksForAllPartitionsAtOnce(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 50, func(c *Config) { c.Consumer.MaxWait = 20 * time.Second })
	require.NoError(t, b.client.RefreshMetadata(b.ctx, "in"))
	l := b.logFetches()
	var ids []int32
	for p := range int32(50) {
		ids = append(ids, p)
	}
	b.reader(ReaderConfig{Partitions: ids, StartOffset: FirstOffset})
	l.await(t, 1)
	require.Equal(t, 50, named(&l.since(0)[0]))
}

// What leaves is forgotten, what comes is added, and the others are not named for it.
func TestReaderFetchSessionForgets(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 4, func(c *Config) { c.Consumer.MaxWait = 20 * time.Millisecond })
	l := b.logFetches()
	r := b.reader(ReaderConfig{Partitions: []int32{0, 1, 2}})
	n := l.await(t, 2)
	r.revoke([]topicPartition{{"in", 1}})
	r.assign(1, starts(0, topicPartition{"in", 3}))
	l.await(t, n+3)
	forgotten, added := 0, 0
	for _, req := range l.since(n) {
		for _, f := range req.ForgottenTopics {
			require.Equal(t, []int32{1}, f.Partitions)
			forgotten++
		}
		for _, topic := range req.Topics {
			require.Len(t, topic.Partitions, 1)
			require.EqualValues(t, 3, topic.Partitions[0].Partition)
			added++
		}
		require.NotZero(t, req.SessionEpoch)
	}
	require.Equal(t, []int{1, 1}, []int{forgotten, added})
}

// A session that the broker does not know any more, for whatever reason, costs nothing but
// another one: nothing is an error, lost or repeated.
func TestReaderFetchSessionIsLost(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 3, func(c *Config) { c.Consumer.MaxWait = 10 * time.Millisecond })
	r := b.reader(ReaderConfig{Partitions: []int32{0, 1, 2}})
	l := b.logFetches()
	n := 0
	for round, code := range []int16{
		wire.ErrFetchSessionIDNotFound.Code, wire.ErrInvalidFetchSessionEpoch.Code, wire.ErrFetchSessionTopicID.Code,
	} {
		l.await(t, len(l.since(0))+2)
		answered := make(chan struct{}) // closed by the broker's goroutine, awaited below
		b.cluster.Answer(fetch.Key, func(_ int32, req kmsg.Request) (kmsg.Response, error) {
			if req.(*kmsg.FetchRequest).SessionEpoch <= 0 {
				return nil, nil
			}
			resp := req.ResponseKind().(*kmsg.FetchResponse)
			resp.ErrorCode = code
			close(answered)
			return resp, nil
		})
		<-answered
		for p := range int32(3) {
			b.write(p, values(n, n+10))
		}
		for range 30 {
			m, err := r.FetchMessage(b.ctx)
			require.NoError(t, err)
			require.GreaterOrEqual(t, m.Offset, int64(n))
		}
		n += 10
		full := 0
		for _, req := range l.since(0) {
			if req.SessionEpoch == 0 {
				full++
				require.Equal(t, 3, named(&req))
			}
		}
		require.GreaterOrEqual(t, full, round+1)
	}
	require.Zero(t, r.Stats().Errors)
	require.EqualValues(t, 90, r.Stats().Messages)
	require.EqualValues(t, 1, r.Stats().Dials, "over the same connection")
}

// Brokers without sessions, brokers that have none to give, and brokers before topic ids.
func TestReaderWithoutFetchSession(t *testing.T) {
	rows := []struct {
		what    string
		options broker.Options
		newest  int16
	}{
		{"Fetch before sessions", broker.Options{VersionCaps: map[int16]int16{fetch.Key: 6}}, 6},
		{"Fetch before topic ids", broker.Options{VersionCaps: map[int16]int16{fetch.Key: 12}}, 12},
		{"metadata before topic ids", broker.Options{VersionCaps: map[int16]int16{3: 9}}, 12},
		{"Kafka 2.1", broker.Options{Version: "2.1"}, 10},
		{"the newest", broker.Options{}, 18},
	}
	for _, row := range rows {
		b := newReaderBed(t, row.options, 2, func(c *Config) { c.Consumer.MaxWait = 10 * time.Millisecond })
		l := b.logFetches()
		r := b.reader(ReaderConfig{Partitions: []int32{0, 1}})
		for i := range 5 {
			b.write(0, values(i, i+1))
			b.expect(r, i, i+1)
		}
		for _, req := range l.since(0) {
			require.Equal(t, row.newest, req.Version, row.what)
			if row.newest < 7 {
				require.Equal(t, 2, named(&req), row.what)
				require.Equal(t, [2]int32{0, -1}, [2]int32{req.SessionID, req.SessionEpoch}, row.what)
			}
		}
		require.Zero(t, r.Stats().Errors, row.what)
	}
}

// A broker that gives no session (its cache is full) is asked for one each time.
func TestReaderFetchSessionRefused(t *testing.T) {
	s := serve(batchOf(t, shape{base: 0}, values(0, 3)))
	r, ctx := s.start(t, ReaderConfig{}, nil)
	require.Equal(t, []int64{0, 1, 2}, offsets(t, ctx, r, 3))
	require.Eventually(t, func() bool { return len(s.asked()) > 4 }, 10*time.Second, time.Millisecond)
	for _, req := range s.asked() {
		require.Equal(t, [2]int32{0, 0}, [2]int32{req.SessionID, req.SessionEpoch})
		require.Equal(t, 1, named(&req))
	}
}

// A broker that answers at once with nothing, instead of waiting, does not make the reader spin.
func TestReaderIsNotHurriedByEmptyAnswers(t *testing.T) {
	s := &script{last: 10}
	s.whole = func(resp *kmsg.FetchResponse) {
		resp.SessionID = 9
		if len(s.asked()) > 1 {
			resp.Topics = nil
		}
	}
	s.fetch = func(_ rawserver.Request, _ kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) *rawserver.Reply {
		p.RecordBatches = batchOf(t, shape{base: 0}, values(0, 1)) // so that the script does not wait
		return nil
	}
	_, _ = s.start(t, ReaderConfig{}, func(c *Config) {
		c.Consumer.MaxWait = 5 * time.Second
		c.Consumer.ReadBackoffMin, c.Consumer.ReadBackoffMax = 50*time.Millisecond, 50*time.Millisecond
	})
	begin := time.Now()
	require.Eventually(t, func() bool { return len(s.asked()) >= 8 }, 10*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond, fmt.Sprint(len(s.asked())))
}

// The broker is told that a session is not needed any more: when the reader closes, and when nothing is
// fetched from it any more.
func TestReaderFetchSessionEnds(t *testing.T) {
	for name, end := range map[string]func(*Reader){
		"with the reader":           func(r *Reader) { _ = r.Close() },
		"with the last partition":   func(r *Reader) { r.revoke([]topicPartition{{"in", 0}, {"in", 1}}) },
		"not with the client's end": func(r *Reader) { _ = r.client.Close(); _ = r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReaderBed(t, broker.Options{}, 2, func(c *Config) { c.Consumer.MaxWait = 5 * time.Millisecond })
			l := b.logFetches()
			r := b.reader(ReaderConfig{Partitions: []int32{0, 1}})
			l.await(t, 3)
			var session int32
			for _, req := range l.since(0) {
				session = max(session, req.SessionID)
			}
			require.Positive(t, session)
			end(r)
			finals := func() (n int) {
				for _, req := range l.since(0) {
					if req.SessionEpoch == fetch.FinalEpoch {
						require.Equal(t, session, req.SessionID)
						require.Empty(t, req.Topics)
						n++
					}
				}
				return n
			}
			want := 1
			if name == "not with the client's end" {
				want = 0
			}
			require.Eventually(t, func() bool { return finals() == want }, 5*time.Second, time.Millisecond)
		})
	}
}

// A broker that does not answer does not hold Close up for long.
func TestReaderFetchSessionEndIsBounded(t *testing.T) {
	b := newReaderBed(t, broker.Options{}, 1, func(c *Config) { c.Consumer.MaxWait = 5 * time.Millisecond })
	l := b.logFetches()
	r := b.reader(ReaderConfig{})
	l.await(t, 3)
	b.cluster.StallKey(fetch.Key, 0)
	began := time.Now()
	require.NoError(t, r.Close())
	require.Less(t, time.Since(began), 2*sessionWithin)
	b.cluster.Resume()
}
