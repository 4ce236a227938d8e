// Package synthetic is a run.Target whose latency is scripted: a queue in front of a server
// with a capacity, stalls, refusals, a bounded client buffer, consumers with a clock of their
// own. What the engine should report then follows from formulas, and its arithmetic can be
// proved, on a virtual clock, to the digit.
//
// The instants it reports are the scripted ones, not those at which its goroutines happened to
// run, so on a real clock too only the load's own lateness shows.
package synthetic
