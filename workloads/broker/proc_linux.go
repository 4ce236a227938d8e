package broker

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from the child, and has the kernel kill it when the
// thread that starts it is gone, also while it is paused.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
