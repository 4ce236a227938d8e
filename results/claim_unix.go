//go:build unix

package results

import (
	"errors"
	"os"
	"syscall"
)

// busyHint is what a user may do about a directory that is claimed.
const busyHint = "; wait until it has ended"

// resumeFlag is how the claim of a directory with a result is opened: a file that a killed process
// left is taken over, since its lock ended with that.
const resumeFlag = 0

var errLocked = errors.New("locked by another process")

// lockFile locks a file for this process, or fails at once.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
