// Package run drives load: it executes one point of a plan against a Target, in phases, and
// turns what comes back into a results.Run.
//
// # The way of a message
//
// A load goroutine (loader.go) waits for the next due time (pacer.go), takes messages from its
// producer's pool (pool.go), has them filled and stamped (filler.go) and hands everything due
// over in runs, with one clock reading each. The target reports runs of outcomes to the
// producer's Outcomes, which records them in a recorder (recorder.go) by the window of their due
// time and puts them back into the pool. Arrivals are taken down by their consumer's receiver
// (arrivals.go) and ticked off in the producer's ledger (ledger.go).
//
// # Goroutines
//
//	conductor      Execute's own: goes through the phases (drive.go)
//	load           one a producer; ends when all it sent is decided, at an interrupt, or at the
//	               end of the drain
//	consumers      one each, in Consumer.Run until the drain is over
//	keeper         merges windows that lie back, reads off lag, tells progress (keeper.go)
//	watch          sleeps a millisecond, over and over, to notice pauses (watch.go)
//
// All of them have ended when Execute returns. The targets' own goroutines come in through
// Outcomes and Arrivals.
//
// # Locks
//
// Pool, then recorder; a consumer's recorder alone. Each is taken once a run of messages.
//
// # What is counted where
//
// Attempted messages are counted where they are handed over, acked and failed ones where their
// outcome comes in, and unknown ones by looking for those still open when the drain ends: that
// attempted = acked + failed + unknown is a check, not a definition. Messages that were due and
// that the target never took are attempted and unknown, unless the run was broken off.
//
// The rate is what was acked during the measured phase, whenever it was due: the tail of the
// warm-up makes up for the tail that is acked after the end. Without a warm-up the shortest
// response seen is allowed for when the rate is judged.
package run
