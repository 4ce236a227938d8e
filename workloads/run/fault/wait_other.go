//go:build !linux

package fault

import "time"

// sleepFine sleeps for d, as accurately as the runtime's timers are on this system.
func sleepFine(d time.Duration) { time.Sleep(d) }
