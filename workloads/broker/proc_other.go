//go:build !unix

package broker

import (
	"errors"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func terminate(p *os.Process) error { return p.Kill() }

func pause(*os.Process) error {
	return errors.New("a process cannot be paused on this operating system")
}

func resume(*os.Process) error {
	return errors.New("a process cannot be paused on this operating system")
}
