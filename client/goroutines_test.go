package client

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestGoroutinesMayStartWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g goroutines
		g.wait() // none
		g.started()
		waited := make(chan struct{}, 2) // written by those who wait, read below
		for range 2 {
			go func() { g.wait(); waited <- struct{}{} }() // ends with the last of g
		}
		synctest.Wait()
		g.started()
		g.ended()
		synctest.Wait()
		require.Empty(t, waited, "one is running")
		g.ended()
		<-waited
		<-waited
		g.wait()
	})
}
