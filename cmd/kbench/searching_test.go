package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run/capacity"
)

// The rate of a step is that of all producers together, whoever's the workload's own rate is.
func TestAStepIsAtTheRateOfAllProducers(t *testing.T) {
	s := searching{bench: &bench{plan: &plan.Plan{}}, o: &capacityOptions{}}
	p := plan.Point{Definition: workloads.Default()}
	p.Definition.Producers.Count, p.Definition.Producers.RateOf, p.Definition.Producers.Rate = 3, workloads.OfEach, 10
	got := s.at(&p, capacity.Step{Stage: capacity.Probe, Number: 1, Rate: 600}).Definition.Producers
	require.InDelta(t, 600, got.Rate*got.Fleet(), 0)
	require.InDelta(t, 30, p.Definition.Producers.Rate*p.Definition.Producers.Fleet(), 0, "the point stays as it is")
}
