//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hasRoom says whether a terminal has a size. Those that programs make may have none, and what
// is drawn over there is never seen.
func hasRoom(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil && size.Col > 0 && size.Row > 0
}
