//go:build !unix

package main

import "math"

// fileLimit is not known here.
func fileLimit() int { return math.MaxInt }
