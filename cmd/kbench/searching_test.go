package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/plan"
	"github.com/kbench/kbench/workloads/run/capacity"
)

// A lower bound is a figure; that nothing held is the cluster's only where it was seen not to hold.
func TestCapacityCodes(t *testing.T) {
	for _, tt := range []struct {
		says     string
		searches []results.Capacity
		code     int
	}{
		{"found", []results.Capacity{{Outcome: results.CapacityFound}}, codeDone},
		{"a lower bound, since the generator gave out", []results.Capacity{{Outcome: results.CapacityGenerator, Generator: "too busy"}}, codeDone},
		{"nothing holds", []results.Capacity{{Outcome: results.CapacityNothing}}, codeThreshold},
		{"nothing holds, which the generator is to blame for", []results.Capacity{{Outcome: results.CapacityNothing, Generator: "too busy"}}, codeInvalid},
		{"not confirmed", []results.Capacity{{Outcome: results.CapacityUnconfirmed, Generator: "too busy"}}, codeInconclusive},
		{"the worst of several", []results.Capacity{{Outcome: results.CapacityFound}, {Outcome: results.CapacityNothing}, {Outcome: results.CapacityUnconfirmed}}, codeThreshold},
	} {
		require.Equal(t, tt.code, capacityCode(&results.Result{Capacity: tt.searches}), tt.says)
	}
}

// The rate of a step is that of all producers together, whoever's the workload's own rate is.
func TestAStepIsAtTheRateOfAllProducers(t *testing.T) {
	s := searching{bench: &bench{plan: &plan.Plan{}}, o: &capacityOptions{}}
	p := plan.Point{Definition: workloads.Default()}
	p.Definition.Producers.Count, p.Definition.Producers.RateOf, p.Definition.Producers.Rate = 3, workloads.OfEach, 10
	got := s.at(&p, capacity.Step{Stage: capacity.Probe, Number: 1, Rate: 600}).Definition.Producers
	require.InDelta(t, 600, got.Rate*got.Fleet(), 0)
	require.InDelta(t, 30, p.Definition.Producers.Rate*p.Definition.Producers.Fleet(), 0, "the point stays as it is")
}
