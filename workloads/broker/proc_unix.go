//go:build unix

package broker

import (
	"errors"
	"os"
	"syscall"
)

// terminate asks a process to end, waking it first if it is paused.
func terminate(p *os.Process) error {
	return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
