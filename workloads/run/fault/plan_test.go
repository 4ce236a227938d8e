package fault

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTruncatedAnswers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		bytes int
		want  int
	}{
		{"nothing arrives", 0, 0},
		{"within the length", 2, 2},
		{"within the header", 6, 6},
		{"within the body", 58, 58},
		{"never all of it", 1000, 107},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(t, Options{})
			b.set(Slow(time.Millisecond)) // what is let through comes before the end
			c := b.dial()
			c.call(100)
			plan := b.proxy.Truncate(Truncation{Node: AllNodes, Keys: []int16{heartbeat}, Bytes: tc.bytes, How: Finish})
			want := c.send(100, 0)
			c.send(100, 0)
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, want[:tc.want], got)
			<-plan.Done()
			require.EqualValues(t, 1, b.proxy.Stats(AllNodes).Truncated)
			b.dial().call(100) // one was asked for
		})
	}
}

func TestTruncationChoosesItsAnswers(t *testing.T) {
	b := newBed(t, Options{Seed: 3})
	other := b.proxy.Truncate(Truncation{Node: AllNodes, Keys: []int16{heartbeat + 1}})
	elsewhere := b.proxy.Truncate(Truncation{Node: 9})
	plan := b.proxy.Truncate(Truncation{Node: AllNodes, Answers: 3, Bytes: Random, How: Finish})
	var lengths []int
	for range 3 {
		c := b.dial()
		want := c.send(1000, 0)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want[:len(got)], got)
		lengths = append(lengths, len(got))
	}
	<-plan.Done()
	b.dial().call(10)
	require.NotEqual(t, lengths[0], lengths[1], "drawn anew: %v", lengths)
	other.Cancel()
	elsewhere.Cancel()
	elsewhere.Cancel()
	<-other.Done()
	<-elsewhere.Done()
}

func TestRandomTruncationStaysWithin(t *testing.T) {
	tr := Truncation{Bytes: Random}
	require.EqualValues(t, 1, tr.keep(5, 0))
	require.EqualValues(t, 4, tr.keep(5, 0.999999))
}
