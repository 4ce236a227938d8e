package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func labels(p *Plan) (all, skipped []string) {
	for _, point := range p.Points {
		all = append(all, point.ID+" "+point.Label)
		if point.Skipped != "" {
			skipped = append(skipped, point.ID)
		}
	}
	return all, skipped
}

func TestDesigns(t *testing.T) {
	const sweep = "\nsweep:\n  producer.requiredAcks: [all, 1, 0]\n  producer.idempotent: [true, false]\n  channelBufferSize: [1, 2]\n"
	for _, row := range []struct {
		says, yaml string
		points     []string
		skipped    []string
		text       string
	}{
		{"one factor at a time: the first of each, then the others of one", "design.kind: oneFactor" + sweep, []string{
			"p00 requiredAcks=all idempotent=true channelBufferSize=1",
			"p01 requiredAcks=1 idempotent=true channelBufferSize=1",
			"p02 requiredAcks=0 idempotent=true channelBufferSize=1",
			"p03 requiredAcks=all idempotent=false channelBufferSize=1",
			"p04 requiredAcks=all idempotent=true channelBufferSize=2",
		}, []string{"p01", "p02"}, "one factor at a time: each point differs from p00 in one setting; all combinations would be 12"},
		{"points of one's own", "points:\n- {}\n- {producer.requiredAcks: 1, producer.idempotent: true}\n- {producer.flush: {messages: 5}, channelBufferSize: 7}\n", []string{
			"p00 as the workload has it", "p01 requiredAcks=1 idempotent=true", "p02 flush={messages: 5} channelBufferSize=7",
		}, []string{"p01"}, "points that the workload lists"},
		{"a sample as large as there is", "design: {kind: sample, points: 100}" + sweep, []string{
			"p00 requiredAcks=all idempotent=true channelBufferSize=1", "p01 requiredAcks=all idempotent=true channelBufferSize=2",
			"p02 requiredAcks=all idempotent=false channelBufferSize=1", "p03 requiredAcks=all idempotent=false channelBufferSize=2",
			"p04 requiredAcks=1 idempotent=true channelBufferSize=1", "p05 requiredAcks=1 idempotent=true channelBufferSize=2",
			"p06 requiredAcks=1 idempotent=false channelBufferSize=1", "p07 requiredAcks=1 idempotent=false channelBufferSize=2",
			"p08 requiredAcks=0 idempotent=true channelBufferSize=1", "p09 requiredAcks=0 idempotent=true channelBufferSize=2",
			"p10 requiredAcks=0 idempotent=false channelBufferSize=1", "p11 requiredAcks=0 idempotent=false channelBufferSize=2",
		}, []string{"p04", "p05", "p08", "p09"}, "a sample of the 12 combinations, drawn by the seed"},
	} {
		t.Run(row.says, func(t *testing.T) {
			p, err := Make(load(t, "name: designs\n"+row.yaml), fakeClient{})
			require.NoError(t, err)
			points, skipped := labels(p)
			require.Equal(t, row.points, points)
			require.Equal(t, row.skipped, skipped)
			require.Contains(t, p.String(), "\n"+row.text+"\n")
			require.Len(t, p.Order, len(points)-len(skipped))
		})
	}
}

// What a chosen point does not set but others do is what the workload says, in its settings as well.
func TestChosenPointsHaveAllSettings(t *testing.T) {
	p, err := Make(load(t, "name: x\nproducer.requiredAcks: 1\npoints:\n- {payload.size: 7}\n- {producer.requiredAcks: all}\n- {channelBufferSize: 9}"), fakeClient{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"payload.size": int64(7), "producer.requiredAcks": "1", "channelBufferSize": int64(0)}, p.Points[0].Settings)
	require.Equal(t, map[string]any{"payload.size": int64(100), "producer.requiredAcks": "all", "channelBufferSize": int64(0)}, p.Points[1].Settings)
	require.Equal(t, 7, p.Points[0].Definition.Payload.Size)
	require.Equal(t, 100, p.Points[1].Definition.Payload.Size)
	require.NotEqual(t, p.Points[1].Definition.Hash(), p.Points[2].Definition.Hash())
}

// A sample of a matrix far too large to be run: as many points as asked for can be run, each is
// there once, the seed decides which, and what makes no sense is named.
func TestSamples(t *testing.T) {
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprint(i+1))
	}
	list := "[" + strings.Join(values, ",") + "]"
	sample := func(seed int) *Plan {
		p, err := Make(load(t, fmt.Sprintf("name: large\nseed: %d\ndesign: {kind: sample, points: 50}\nsweep:\n  channelBufferSize: %s\n  producer.flush.messages: %s\n"+
			"  producer.requiredAcks: [0, 1, all]\n  producer.idempotent: [true, false]\n", seed, list, list)), fakeClient{})
		require.NoError(t, err)
		return p
	}
	one, again, other := sample(1), sample(1), sample(2)
	a, skipped := labels(one)
	b, _ := labels(again)
	c, _ := labels(other)
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)
	require.Len(t, one.Order, 50, "in place of those that make no sense others were drawn")
	require.NotEmpty(t, skipped)
	require.Len(t, one.Points, 50+len(skipped))
	require.EqualValues(t, 6_000_000, one.Design.Of)
	places := map[uint64]bool{}
	for _, p := range one.Points {
		places[p.place] = true
	}
	require.Len(t, places, len(one.Points))
}

// Drawing goes through all combinations once.
func TestDrawingProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "values")
		var values []string
		for i := range n {
			values = append(values, fmt.Sprint(i))
		}
		def := load(t, fmt.Sprintf("name: x\nseed: %d\ndesign: {kind: sample, points: 1}\nsweep:\n  channelBufferSize: [%s]\n",
			rapid.Uint32().Draw(rt, "seed"), strings.Join(values, ",")))
		d, err := newDesigner(def)
		require.NoError(rt, err)
		var seen []string
		for c, more := d.next(); more; c, more = d.next() {
			seen = append(seen, c.sets[0].Value.String())
		}
		slices.Sort(seen)
		slices.Sort(values)
		require.Equal(rt, values, seen)
	})
}

func TestSampleGolden(t *testing.T) {
	p, err := Make(load(t, "name: sampled\nrepeat: 2\ndesign: {kind: sample, points: 3}\nproducers: {rate: 1k}\nsweep:\n  payload.size: [10, 100, 1000]\n  producer.requiredAcks: [1, all]\n  producer.idempotent: [true, false]\n"), fakeClient{})
	require.NoError(t, err)
	path := filepath.Join("testdata", "sampled.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(p.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), p.String())
}
