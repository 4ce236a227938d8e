//go:build kafka

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBacklogIsReadByEveryRun fills a topic of real Kafka once, reads it twice by each of our
// forms, and leaves nothing behind.
func TestBacklogIsReadByEveryRun(t *testing.T) {
	s := same(200_000, 100)
	s.Linger = 10 * time.Millisecond
	st, err := backlogStage(t.Context(), partitions, s)
	require.NoError(t, err)
	defer st.close()
	p, err := ourProgram()
	require.NoError(t, err)
	for _, mode := range []string{"consume", "consume-message", "consume-bare", "consume"} {
		s.Lib, s.Mode = "kbench", mode
		l, err := st.once(t.Context(), p, s)
		require.NoError(t, err, mode)
		require.EqualValues(t, s.N, l["n"], mode)
	}
}
