package conn

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kbench/kbench/client/internal/rawserver"
)

func TestKeepAlive(t *testing.T) {
	s := start(t, rawserver.Script{Handle: echo})
	for _, row := range []struct {
		period  time.Duration
		on      int
		seconds int
	}{{7 * time.Second, 1, 7}, {0, 1, 15}, {-1, 0, 0}} {
		c := dial(t, s, Options{KeepAlive: row.period})
		raw, err := c.raw.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			on, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			require.NoError(t, err)
			require.Equal(t, row.on, on, "period %v", row.period)
			if row.on == 0 {
				return
			}
			seconds, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
			require.NoError(t, err)
			require.Equal(t, row.seconds, seconds)
		}))
	}
}
