package broker

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup keeps the terminal's Ctrl-C from the child, and has the kernel kill it when the
// thread that starts it is gone, also while it is paused.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pause returns once every thread of the process has stopped, which the signal alone does not
// wait for. The state is only looked at: who waits for the process's end is not disturbed.
func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("waiting for process %d to pause: %w", p.Pid, err)
			}
			return nil
		}
	}
}
