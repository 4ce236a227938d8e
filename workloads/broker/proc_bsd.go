//go:build unix && !linux

package broker

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from the child.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
