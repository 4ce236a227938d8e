package plan

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fakeClient is a client schema with one rule across keys.
type fakeClient struct{}

type fakeConfig struct {
	ChannelBufferSize int `key:"channelBufferSize"`
	Net               struct {
		MaxOpenRequests int `key:"maxOpenRequests"`
	} `key:"net"`
	Producer struct {
		RequiredAcks string `key:"requiredAcks" enum:"0,1,all"`
		Idempotent   bool   `key:"idempotent"`
		Flush        struct {
			Messages  int           `key:"messages"`
			Bytes     int           `key:"bytes" unit:"bytes"`
			Frequency time.Duration `key:"frequency"`
		} `key:"flush"`
		Retry struct {
			Max int `key:"max"`
		} `key:"retry"`
	} `key:"producer"`
	Metadata struct {
		Retry struct {
			Max int `key:"max"`
		} `key:"retry"`
	} `key:"metadata"`
	Consumer struct {
		MaxWait time.Duration `key:"maxWait"`
	} `key:"consumer"`
}

func (fakeClient) Fields() []settings.Field { return settings.Fields(&fakeConfig{}) }

func (fakeClient) Check(as []settings.Assignment) settings.Problems {
	c := &fakeConfig{}
	c.Producer.RequiredAcks = "all"
	if problems := settings.Apply(c, as...); len(problems) > 0 {
		return problems
	}
	if c.Producer.Idempotent && c.Producer.RequiredAcks != "all" {
		return settings.Problems{{File: "w.yaml", Line: 3, Column: 1, Key: "producer.idempotent", Text: "needs producer.requiredAcks=all, which is " + c.Producer.RequiredAcks}}
	}
	return nil
}

func load(t *testing.T, text string) *workloads.Definition {
	t.Helper()
	d, err := workloads.Decode("w.yaml", []byte(text), fakeClient{}, workloads.Overrides{})
	require.NoError(t, err)
	return d
}

const sweeping = `
name: sweeping
seed: 7
repeat: 3
producers: {rate: 1k}
phases: {warmUp: 1s, duration: 4s}
payload: {keys: {kind: uniform, size: 20}}
producer.flush: {bytes: 9}
sweep:
  producer.requiredAcks: [1, all]
  producer.flush: [{}, {messages: 100, frequency: 5ms}]
  producer.idempotent: [false, true]
`

func TestPoints(t *testing.T) {
	p, err := Make(load(t, sweeping), fakeClient{})
	require.NoError(t, err)
	require.Len(t, p.Points, 8)
	require.Equal(t, "p00", p.Points[0].ID)
	require.Equal(t, "requiredAcks=1 flush={} idempotent=false", p.Points[0].Label)
	require.Equal(t, "requiredAcks=1 flush={messages: 100, frequency: 5ms} idempotent=true", p.Points[3].Label, "the last axis changes fastest")
	require.Equal(t, "producer.idempotent: needs producer.requiredAcks=all, which is 1", p.Points[3].Skipped)
	require.Empty(t, p.Points[7].Skipped)
	require.Equal(t, map[string]any{"producer.requiredAcks": "all", "producer.idempotent": true,
		"producer.flush": map[string]any{"messages": int64(100), "frequency": "5ms"}}, p.Points[7].Settings)

	var c fakeConfig
	require.Empty(t, settings.Apply(&c, p.Points[4].Client...))
	require.Equal(t, 0, c.Producer.Flush.Bytes, "a swept section replaces what the file set in it")
	require.Equal(t, "all", c.Producer.RequiredAcks)
	require.Empty(t, p.Points[4].Definition.Sweep)
	require.NotEqual(t, p.Points[0].Definition.Hash(), p.Points[4].Definition.Hash())

	require.Len(t, p.Order, 6*3, "6 of 8 points, 3 times")
	require.Equal(t, Estimate{Executions: 18, Messages: 18 * 5000, Bytes: 18 * 5000 * 120, Time: 18 * 7 * time.Second}, p.Estimate)
}

// A form that makes no sense with a setting is named, and left out.
func TestFormsThatMakeNoSenseAreLeftOut(t *testing.T) {
	p, err := Make(load(t, "name: forms\nproducer.flush.messages: 100\nsweep:\n  producers.form: [callback, channels, sync, batch]\n  producer.idempotent: [false, true]\n"), fakeClient{})
	require.NoError(t, err)
	skipped := map[string]string{}
	for _, point := range p.Points {
		if point.Skipped != "" {
			skipped[point.Label] = point.Skipped
		}
	}
	never := "producers.form: is sync, and one message at a time never fires producer.flush.messages=100; set producer.flush.frequency, which ends the wait"
	require.Equal(t, map[string]string{
		"form=sync idempotent=false": never, "form=sync idempotent=true": never,
		"form=batch idempotent=true": "producers.form: is batch, which cannot be idempotent, and producer.idempotent is true",
	}, skipped)
	require.Len(t, p.Order, 5)
}

func TestOrderGolden(t *testing.T) {
	p, err := Make(load(t, sweeping), fakeClient{})
	require.NoError(t, err)
	path := filepath.Join("testdata", "sweeping.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(p.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), p.String())
}

// TestPropertyBlocks: every block holds every runnable point once, and the seed decides.
func TestPropertyBlocks(t *testing.T) {
	base := load(t, sweeping)
	rapid.Check(t, func(t *rapid.T) {
		d := *base
		d.Seed, d.Repeat = rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 20).Draw(t, "repeat")
		p, err := Make(&d, fakeClient{})
		require.NoError(t, err)
		again, err := Make(&d, fakeClient{})
		require.NoError(t, err)
		require.Equal(t, p.Order, again.Order)
		for i, e := range p.Order {
			require.Equal(t, i, e.Order)
			require.Equal(t, i/6, e.Repeat)
		}
		for block := range slices.Chunk(p.Order, 6) {
			seen := map[int]bool{}
			for _, e := range block {
				seen[e.Point] = true
				require.Empty(t, p.Points[e.Point].Skipped)
			}
			require.Len(t, seen, 6)
		}
	})
}

func TestBlocksDiffer(t *testing.T) {
	d := load(t, sweeping)
	d.Repeat = 50
	p, err := Make(d, fakeClient{})
	require.NoError(t, err)
	first := map[int]int{}
	for block := range slices.Chunk(p.Order, 6) {
		first[block[0].Point]++
	}
	require.Len(t, first, 6, "every point comes first in some of 50 blocks")
}

func TestWithoutASweep(t *testing.T) {
	p, err := Make(load(t, "name: one\nproducer.idempotent: true"), fakeClient{})
	require.NoError(t, err)
	require.Len(t, p.Points, 1)
	require.Equal(t, "one", p.Points[0].Label)
	require.Equal(t, 1, p.Estimate.ClosedLoop)
	require.Contains(t, p.String(), "1 in a closed loop")

	d := load(t, "name: one")
	d.Client = append(d.Client, settings.Assignment{Key: "producer.requiredAcks", Value: settings.Of("1")}, settings.Assignment{Key: "producer.idempotent", Value: settings.Of(true)})
	_, err = Make(d, fakeClient{})
	var problems settings.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, 3, problems[0].Line, "the only point's problem keeps its place")
}

func TestNothingToRun(t *testing.T) {
	_, err := Make(load(t, "producer.idempotent: true\nsweep: {producer.requiredAcks: [0, 1]}"), fakeClient{})
	require.ErrorIs(t, err, ErrNothing)
	require.ErrorContains(t, err, "requiredAcks=0: producer.idempotent: needs producer.requiredAcks=all")
	_, err = Make(&workloads.Definition{Sweep: []workloads.Axis{{Key: "channelBufferSize"}}}, fakeClient{})
	require.ErrorContains(t, err, "has no values")
}

func TestWorkloadKeysAreSweptToo(t *testing.T) {
	p, err := Make(load(t, "sweep:\n  producers.rate: [1k, 2k]\n  payload.size: [10, 200]\n  consumers.count: [1, 7]\n"), fakeClient{})
	require.NoError(t, err)
	require.Equal(t, "rate=1k size=10 count=1", p.Points[0].Label)
	require.Equal(t, 2000.0, p.Points[7].Definition.Producers.Rate)
	require.Equal(t, 10, p.Points[0].Definition.Payload.Size)
	require.Contains(t, p.Points[1].Skipped, "consumers.count: is 7, but there are 6 partitions")
}

func TestShortNames(t *testing.T) {
	p, err := Make(load(t, "sweep:\n  producer.retry.max: [1]\n  metadata.retry.max: [2]\n  net.maxOpenRequests: [3]\n"), fakeClient{})
	require.NoError(t, err)
	require.Equal(t, "producer.retry.max=1 metadata.retry.max=2 maxOpenRequests=3", p.Points[0].Label)
}

func TestEstimates(t *testing.T) {
	for _, row := range []struct {
		says, yaml string
		messages   int64
		time       time.Duration
	}{
		{"a ramp by its mean, the warm-up at its end rate", "producers: {rate: 2k, schedule: {kind: ramp, from: 1k}}\nphases: {warmUp: 1s, duration: 10s}", 15_000 + 2000, 13 * time.Second},
		{"steps", "producers: {schedule: {kind: step, steps: [100, 300]}}\nphases: {warmUp: 0, duration: 10s}", 2000, 12 * time.Second},
		{"a number of messages ends it", "producers: {rate: 1k, messages: 5000}\nphases: {warmUp: 0, duration: 10s}", 5000, 7 * time.Second},
		{"a number of messages alone", "producers: {rate: 1k, messages: 50000}\nphases: {warmUp: 0, duration: 0}", 50_000, 52 * time.Second},
		{"a closed loop with a number", "producers: {messages: 5000}\nphases: {warmUp: 0, duration: 10s}", 5000, 12 * time.Second},
		{"only consuming", "producers.count: 0\nconsumers.count: 1\ntopics.name: t\nphases: {warmUp: 0, duration: 10s}", 0, 12 * time.Second},
	} {
		p, err := Make(load(t, row.yaml), fakeClient{})
		require.NoError(t, err, row.says)
		require.Equal(t, row.messages, p.Estimate.Messages, row.says)
		require.Equal(t, row.time, p.Estimate.Time, row.says)
	}
}

func TestBuiltInSweepTakesMinutes(t *testing.T) {
	d, err := workloads.Load("acks-flush-inflight", fakeClient{}, workloads.Overrides{})
	require.NoError(t, err)
	p, err := Make(d, fakeClient{})
	require.NoError(t, err)
	require.Len(t, p.Points, 36)
	require.Len(t, p.Order, 36)
	require.LessOrEqual(t, p.Estimate.Time, 5*time.Minute)
}
