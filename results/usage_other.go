//go:build !unix

package results

import "time"

// processUsage is not known here.
func processUsage() (cpu time.Duration, maxRSS int64) { return 0, 0 }
