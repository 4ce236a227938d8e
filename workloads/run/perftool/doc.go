// Package perftool prints what Kafka's own kafka-producer-perf-test, kafka-consumer-perf-test and
// EndToEndLatency print, in their words and columns (Kafka 4.4), from what passes between the engine
// and its target. It measures nothing by itself: its instants are the engine's, and what it prints is
// beside the result, not in its place.
//
// Where the figures differ in meaning from Kafka's own, the comment of the type says so.
package perftool

import (
	"context"

	"github.com/kbench/kbench/workloads/run"
)

// beside is a Target with somebody beside it.
type beside struct{ run.Target }

// Settle passes on what some targets have.
func (b beside) Settle(ctx context.Context) error {
	if s, slow := b.Target.(run.Settler); slow {
		return s.Settle(ctx)
	}
	return nil
}

// ReadEnds passes on what some targets have.
func (b beside) ReadEnds(ctx context.Context) error {
	if r, asks := b.Target.(run.EndReader); asks {
		return r.ReadEnds(ctx)
	}
	return nil
}

const (
	megabyte    = 1024 * 1024
	second      = 1e9
	millisecond = 1e6
)

// per is n a second, 0 where there was no time.
func per(n float64, ns int64) float64 {
	if ns <= 0 {
		return 0
	}
	return n / (float64(ns) / second)
}

// wholeMs is a time in whole milliseconds, as Kafka's tools print percentiles.
func wholeMs(ns int64) int64 { return (ns + millisecond/2) / millisecond }
