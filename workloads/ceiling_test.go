package workloads

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGeneratorHashIsOfWhatAMessageTakes(t *testing.T) {
	decode := func(text string) *Definition {
		d, err := Decode("w.yaml", []byte("name: w\nproducers: {count: 2, rate: 20k}\nconsumers: {count: 1}\n"), fakeClient{}, Overrides{Set: []string{text}})
		require.NoError(t, err, text)
		return d
	}
	base := decode("seed=1").GeneratorHash()
	for _, same := range []string{
		"producers.rate=5", "producers.schedule={kind: burst, burstEvery: 1s}", "producers.pacer=spin", "phases.duration=1h", "seed=9",
		"name=other", "consumers.count=5", "topics.name=orders", "validity.maxPause=1h", "repeat=3", "thresholds=[lost=0]",
	} {
		require.Equal(t, base, decode(same).GeneratorHash(), same)
	}
	for _, other := range []string{"producers.count=3", "producers.form=sync", "producers.run=1", "payload.size=7", "topics.partitions=7", "payload.keys.kind=uniform"} {
		require.NotEqual(t, base, decode(other).GeneratorHash(), other)
	}
}

func TestForCeiling(t *testing.T) {
	d := Default()
	d.Name = "w"
	d.Producers.Rate, d.Producers.Schedule = 500, Schedule{Kind: "ramp", From: 1}
	d.Consumers.Count, d.Topics.Name, d.Thresholds = 3, "orders", []string{"lost=0"}
	d.Phases.WarmUp, d.Phases.Duration = time.Minute, time.Hour
	c, err := d.ForCeiling(0)
	require.NoError(t, err)
	require.Empty(t, c.Check(), "it is a workload that can be run")
	require.Zero(t, c.Producers.Rate)
	require.Zero(t, c.Consumers.Count)
	require.Empty(t, c.Topics.Name, "the topic of the user's cluster is not there")
	require.Empty(t, c.Thresholds)
	require.Equal(t, 5*time.Second, c.Phases.Duration)
	require.Equal(t, time.Second, c.Phases.WarmUp)
	require.Equal(t, d.Payload, c.Payload)
	require.Equal(t, d.GeneratorHash(), c.GeneratorHash(), "it is the same load")
	c, err = d.ForCeiling(time.Minute)
	require.NoError(t, err)
	require.Equal(t, time.Minute, c.Phases.Duration)
	d.Producers.Count = 0
	_, err = d.ForCeiling(0)
	require.ErrorIs(t, err, ErrNoProducers)
}
