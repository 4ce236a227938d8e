//go:build unix

package results

import (
	"runtime"
	"syscall"
	"time"
)

// processUsage asks getrusage. Its resident size is in bytes on Darwin and kilobytes elsewhere.
func processUsage() (cpu time.Duration, maxRSS int64) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	maxRSS = int64(r.Maxrss) //nolint:unconvert // an int32 on some systems
	if runtime.GOOS != "darwin" && runtime.GOOS != "ios" {
		maxRSS <<= 10
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), maxRSS
}
