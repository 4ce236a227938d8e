//go:build unix

package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// fileLimit is how many files this process may have open. The Go runtime has raised the soft limit to
// the hard one.
func fileLimit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt)) //nolint:unconvert // it is signed on FreeBSD
}
