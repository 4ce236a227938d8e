package fetch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/client/internal/fetch"
)

func TestMissing(t *testing.T) {
	type heard struct {
		at       time.Duration
		notThere bool
	}
	began := time.Now()
	for _, row := range []struct {
		says  string
		heard []heard
		want  time.Duration
	}{
		{"one answer is no time", []heard{{5, true}}, 0},
		{"counted from the first answer", []heard{{5, true}, {9, true}, {25, true}}, 20},
		{"anything else is not missing", []heard{{5, false}, {9, false}}, 0},
		{"anything else in between begins it anew", []heard{{5, true}, {9, false}, {12, true}, {15, true}}, 3},
		{"and ends it", []heard{{5, true}, {9, true}, {12, false}}, 0},
	} {
		var m fetch.Missing
		var got time.Duration
		for _, h := range row.heard {
			got = m.Heard(began.Add(h.at), h.notThere)
		}
		require.Equal(t, row.want, got, row.says)
	}
}

// A position that something is known of is not missing.
func TestWhatEndsMissing(t *testing.T) {
	now := time.Now()
	for says, act := range map[string]func(*fetch.Position){
		"records, or an answer without any":          func(p *fetch.Position) { p.Advance(fetch.Measure(nil, 10)) },
		"a leader that says where the log begins":    func(p *fetch.Position) { p.Resolved(0, 20, fetch.Refuse) },
		"a broker that says that it is out of range": func(p *fetch.Position) { p.Outside() },
		"the application, which moves it":            func(p *fetch.Position) { p.MoveTo(3) },
	} {
		p := fetch.Position{Next: 10}
		p.Missing.Heard(now, true)
		act(&p)
		require.Zero(t, p.Missing.Heard(now.Add(time.Hour), true), says)
	}
	p := fetch.Position{Next: 10}
	p.Missing.Heard(now, true)
	p.Failed(now, fetch.Backoff{Min: time.Second, Max: time.Second})
	require.Equal(t, time.Hour, p.Missing.Heard(now.Add(time.Hour), true), "another failure of the kind does not")
}
