package group

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var p0, p1 = Partition{"t", 0}, Partition{"t", 1}

func mark(p Partition, tag int32, offset int64) Offset { return Offset{p, tag, offset, 7} }

func TestTheBookTellsOnlyWhatWasMarked(t *testing.T) {
	b := NewBook()
	b.Open(p0, 1, -1)
	b.Open(p1, 1, 40)
	require.Empty(t, b.Due(nil, nil), "C6: what was read and not marked is nobody's business")
	require.True(t, b.Mark(mark(p0, 1, 5)))
	require.True(t, b.Mark(mark(p1, 1, 40)))
	require.Equal(t, []Offset{mark(p0, 1, 5)}, b.Due(nil, nil), "40 is known")
	require.Empty(t, b.Due(nil, func(p Partition) bool { return p == p1 }))
	require.Equal(t, Waiting, b.Fate(mark(p0, 1, 5)))
	b.Told(mark(p0, 1, 5))
	require.Equal(t, Taken, b.Fate(mark(p0, 1, 4)))
	require.Empty(t, b.Due(nil, nil))
}

func TestTheBookNeverGoesBack(t *testing.T) {
	b := NewBook()
	b.Open(p0, 1, -1)
	b.Mark(mark(p0, 1, 9))
	require.True(t, b.Mark(mark(p0, 1, 3)), "an earlier mark is no mistake")
	require.Equal(t, []Offset{mark(p0, 1, 9)}, b.Due(nil, nil))
	b.Told(mark(p0, 1, 9))
	b.Mark(mark(p0, 1, 8))
	require.Empty(t, b.Due(nil, nil))
}

func TestTheBookOfALogThatWasCut(t *testing.T) {
	b := NewBook()
	b.Open(p0, 1, 100)
	b.Mark(mark(p0, 1, 3)) // the position was out of range, and reading began at 0
	require.Equal(t, []Offset{mark(p0, 1, 3)}, b.Due(nil, nil))
	require.Equal(t, Waiting, b.Fate(mark(p0, 1, 3)))
	b.Told(mark(p0, 1, 3))
	require.Equal(t, Taken, b.Fate(mark(p0, 1, 3)))

	b.Mark(mark(p0, 1, 50))
	b.Rewind(p0, 2)
	require.NotEmpty(t, b.Due(nil, nil), "another assignment's log")
	b.Rewind(p0, 1)
	require.Empty(t, b.Due(nil, nil))
	b.Mark(mark(p0, 1, 4))
	require.Equal(t, []Offset{mark(p0, 1, 4)}, b.Due(nil, nil))
}

func TestTheBookKnowsAssignmentsApart(t *testing.T) {
	b := NewBook()
	require.False(t, b.Mark(mark(p0, 1, 1)), "never held")
	b.Open(p0, 1, -1)
	b.Mark(mark(p0, 1, 5))
	sent := b.Due(nil, nil)[0]
	b.Mark(mark(p0, 1, 6))
	b.Close(p0)
	require.Empty(t, b.Due(nil, nil))
	require.False(t, b.Mark(mark(p0, 1, 7)))
	require.Equal(t, Stale, b.Fate(mark(p0, 1, 5)))
	b.Told(sent) // the answer came late
	require.Equal(t, Taken, b.Fate(mark(p0, 1, 5)))
	require.Equal(t, Stale, b.Fate(mark(p0, 1, 6)))

	b.Open(p0, 2, 6)
	require.False(t, b.Mark(mark(p0, 1, 7)), "C5: read under the assignment before")
	b.Told(mark(p0, 1, 99)) // later still
	b.Mark(mark(p0, 2, 8))
	require.Equal(t, []Offset{mark(p0, 2, 8)}, b.Due(nil, nil))
	require.Equal(t, Stale, b.Fate(mark(p0, 1, 6)))
	require.ElementsMatch(t, []Partition{p0}, b.Held())
}

func TestTheBookAndAnswersThatComeLate(t *testing.T) {
	b := NewBook()
	b.Open(p0, 1, -1)
	b.Told(mark(p0, 1, 5))
	b.Close(p0)
	b.Told(mark(p0, 1, 3))
	require.Equal(t, Taken, b.Fate(mark(p0, 1, 5)), "what was told later counts")
	b.Open(p0, 2, -1)
	b.Mark(mark(p0, 2, 8))
	b.Told(mark(p0, 1, 8))
	require.NotEmpty(t, b.Due(nil, nil), "it was of another assignment")
	b.Told(mark(p0, 2, 8))
	b.Close(p0)
	require.Equal(t, Taken, b.Fate(mark(p0, 2, 8)))
	require.Equal(t, Stale, b.Fate(mark(p0, 1, 4)), "of one before the last nothing is known")
}

// TestBookProperties: against a plain model, whatever the order of events.
func TestBookProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook()
		tag := map[Partition]int32{}
		marked, told := map[Partition]int64{}, map[Partition]int64{}
		next := int32(0)
		var flying []Offset
		part := rapid.SampledFrom([]Partition{p0, p1})
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				p := part.Draw(t, "p")
				next++
				tag[p], told[p] = next, rapid.Int64Range(-1, 20).Draw(t, "told")
				delete(marked, p)
				b.Open(p, next, told[p])
			},
			"close": func(t *rapid.T) {
				p := part.Draw(t, "p")
				b.Close(p)
				delete(tag, p)
				delete(marked, p)
			},
			"mark": func(t *rapid.T) {
				o := mark(part.Draw(t, "p"), rapid.Int32Range(0, next).Draw(t, "tag"), rapid.Int64Range(0, 30).Draw(t, "offset"))
				held := o.Tag != 0 && tag[o.Partition] == o.Tag
				if held {
					old, some := marked[o.Partition]
					if !some || o.Offset > old {
						marked[o.Partition] = o.Offset
					}
				}
				if b.Mark(o) != held {
					t.Fatalf("mark %v: held %v", o, held)
				}
			},
			"send": func(*rapid.T) { flying = append(flying, b.Due(nil, nil)...) },
			"answer": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip("nothing was sent")
				}
				o := flying[0]
				flying = flying[1:]
				b.Told(o)
				if tag[o.Partition] == o.Tag {
					told[o.Partition] = o.Offset
				}
			},
			"": func(t *rapid.T) {
				due := map[Partition]int64{}
				for _, o := range b.Due(nil, nil) {
					due[o.Partition] = o.Offset
				}
				for _, p := range []Partition{p0, p1} {
					m, some := marked[p]
					want := some && m != told[p]
					if got, is := due[p]; is != want || is && got != m {
						t.Fatalf("%v: due %d %v, marked %d %v, told %d", p, got, is, m, some, told[p])
					}
				}
			},
		})
	})
}
