// Package run drives load: it executes one point of a plan against a Target, in phases, and
// turns what comes back into a results.Run.
package run
