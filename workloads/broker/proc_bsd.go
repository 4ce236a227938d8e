//go:build unix && !linux

package broker

import (
	"os"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the child.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
