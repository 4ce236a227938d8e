package fetch_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/fetch"
	"github.com/kbench/kbench/client/record"
)

// batch is a batch header with n bytes of records, which nobody looks into here.
func batch(base int64, lastDelta, count int32, attributes int16, producer int64, n int) []byte {
	b := make([]byte, record.HeaderSize+n)
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[15], b[16] = 6, 2
	binary.BigEndian.PutUint16(b[21:], uint16(attributes))
	binary.BigEndian.PutUint32(b[23:], uint32(lastDelta))
	binary.BigEndian.PutUint64(b[43:], uint64(producer))
	binary.BigEndian.PutUint32(b[57:], uint32(count))
	return b
}

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestMeasure(t *testing.T) {
	full, empty := batch(10, 4, 5, 0, -1, 50), batch(15, 84, 0, 0, -1, 0)
	rows := []struct {
		what    string
		records []byte
		want    fetch.Extent
		stuck   bool
	}{
		{"nothing", nil, fetch.Extent{Epoch: -1, Next: 10}, false},
		{"one batch", full, fetch.Extent{Epoch: 6, Batches: 1, Bytes: 111, Next: 15}, false},
		{"C2: a batch that compaction emptied still covers its offsets", join(full, empty), fetch.Extent{Epoch: 6, Batches: 2, Bytes: 172, Next: 100}, false},
		{"C9: a batch whose end is missing", join(full, empty[:40]), fetch.Extent{Epoch: 6, Batches: 1, Bytes: 111, Next: 15, Cut: true, Need: 61}, false},
		{"C9: only the begin of a batch", full[:30], fetch.Extent{Epoch: -1, Next: 10, Cut: true, Need: 111}, true},
		{"C9: a few bytes", full[:5], fetch.Extent{Epoch: -1, Next: 10, Cut: true}, true},
		{"a batch from before the position", batch(2, 7, 8, 0, -1, 80), fetch.Extent{Epoch: 6, Batches: 1, Bytes: 141, Next: 10}, true},
	}
	for _, row := range rows {
		got := fetch.Measure(row.records, 10)
		require.Equal(t, row.want, got, row.what)
		require.Equal(t, row.stuck, got.Stuck(10), row.what)
	}
	old := batch(15, 0, 1, 0, -1, 10)
	old[16] = 1
	got := fetch.Measure(join(full, old), 10)
	var format *record.FormatError
	require.ErrorAs(t, got.Err, &format)
	require.EqualValues(t, 15, got.Next, "what stands before the damage counts")
}

func TestWider(t *testing.T) {
	require.Equal(t, 5000, fetch.Extent{Cut: true, Need: 5000}.Wider(1000, 1<<20))
	require.Equal(t, 1<<20, fetch.Extent{Cut: true, Need: 5 << 20}.Wider(1000, 1<<20))
	require.Equal(t, 2000, fetch.Extent{Cut: true}.Wider(1000, 1<<20))
	require.Equal(t, 1<<30, fetch.Extent{Cut: true}.Wider(1<<30+1<<29, 1<<30))
}

func TestFilter(t *testing.T) {
	const transactional, control = 0x10, 0x30
	var f fetch.Filter
	next := func(raw []byte) (*record.Batch, bool) {
		b, _, err := record.Next(raw)
		require.NoError(t, err)
		return &b, f.Hides(&b)
	}
	hides := func(raw []byte) bool { _, h := next(raw); return h }

	f.Reset(nil)
	require.True(t, hides(batch(0, 0, 1, control, 7, 20)), "C3: control batches are never shown")
	require.False(t, hides(batch(1, 0, 1, transactional, 7, 20)), "no list: nothing was aborted")

	f.Reset([]fetch.Aborted{{7, 10}, {8, 12}, {7, 30}})
	require.False(t, hides(batch(5, 1, 1, transactional, 7, 20)), "before the aborted transaction: an earlier one, committed")
	require.True(t, hides(batch(10, 1, 1, transactional, 7, 20)), "C3: aborted")
	require.False(t, hides(batch(12, 0, 1, 0, 7, 20)), "same producer id, but not transactional")
	require.True(t, hides(batch(13, 0, 1, transactional, 8, 20)))
	marker, hidden := next(batch(14, 0, 1, control, 7, 20))
	require.True(t, hidden)
	require.True(t, f.Watching())
	f.Marker(marker, record.Abort)
	require.False(t, hides(batch(15, 0, 1, transactional, 7, 20)), "the next transaction of 7 is not the aborted one")
	require.True(t, hides(batch(16, 0, 1, transactional, 8, 20)), "8 is still being skipped")
	f.Marker(marker, record.Commit)
	require.True(t, hides(batch(30, 0, 1, transactional, 7, 20)), "7 aborted again")
	f.Reset(nil)
	require.False(t, f.Watching())
}

func TestPosition(t *testing.T) {
	var p fetch.Position
	p.MoveTo(fetch.First)
	require.Equal(t, fetch.FindFirst, p.Need)
	require.True(t, p.Resolved(5, 100, fetch.Refuse))
	require.EqualValues(t, 5, p.Next)
	before := p.Version
	p.MoveTo(fetch.Last)
	require.True(t, p.Resolved(5, 100, fetch.Refuse))
	require.EqualValues(t, 100, p.Next)
	require.NotEqual(t, before, p.Version, "answers to what was asked before must not count")

	rows := []struct {
		what   string
		at     int64
		policy fetch.Policy
		ok     bool
		next   int64
	}{
		{"C4: below the log, earliest", 1, fetch.Earliest, true, 5},
		{"C4: below the log, latest", 1, fetch.Latest, true, 100},
		{"C4: beyond the log, earliest", 101, fetch.Earliest, true, 5},
		{"C4: below the log, error", 1, fetch.Refuse, false, 1},
		{"C4: the leader has it after all: the position stays", 50, fetch.Earliest, true, 50},
		{"C4: the end of the log is in range", 100, fetch.Refuse, true, 100},
	}
	for _, row := range rows {
		p.MoveTo(row.at)
		version := p.Version
		p.Outside()
		require.Equal(t, fetch.FindRange, p.Need)
		require.Equal(t, row.ok, p.Resolved(5, 100, row.policy), row.what)
		require.Equal(t, row.next, p.Next, row.what)
		require.Equal(t, version, p.Version, "what was fetched before stays good")
	}
}

func TestPositionBackoff(t *testing.T) {
	var p fetch.Position
	b := fetch.Backoff{Min: 100 * time.Millisecond, Max: 300 * time.Millisecond}
	now := time.Unix(1000, 0)
	for _, want := range []time.Duration{100, 200, 300, 300} {
		p.Failed(now, b)
		require.Equal(t, now.Add(want*time.Millisecond), p.Until)
	}
	require.True(t, p.Waiting(now))
	require.False(t, p.Waiting(p.Until))
	p.Advance(fetch.Extent{Next: 8})
	require.False(t, p.Waiting(now))
	require.Zero(t, p.Failures)
	require.Zero(t, fetch.Backoff{}.After(3))
}
