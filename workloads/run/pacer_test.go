package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChoosePacer(t *testing.T) {
	for _, row := range []struct {
		sentence    string
		kind        string
		producers   int
		rate, cores float64
		want        string
	}{
		{"what was asked for stands", pacerSpin, 1000, 1, 1, pacerSpin},
		{"a thread each while a core is left for the client", pacerAuto, 3, 1000, 4, pacerNanosleep},
		{"not when they would take all", pacerAuto, 4, 1000, 4, pacerSleep},
		{"half a core is none", pacerAuto, 1, 1000, 1.5, pacerSleep},
		{"thousands share the runtime's timers", pacerAuto, 14_000, 14_000, 64, pacerSleep},
		{"faster than a thread wakes, with cores to spare", pacerAuto, 1, 20_000, 4, pacerSpin},
		{"a little slower, and the thread sleeps", pacerAuto, 1, 19_999, 4, pacerNanosleep},
		{"the rate of each producer counts", pacerAuto, 2, 30_000, 8, pacerNanosleep},
		{"as fast, but with too few cores to burn one", pacerAuto, 1, 20_000, 3, pacerNanosleep},
		{"without a rate nobody waits", pacerAuto, 1, 0, 8, pacerSleep},
		{"auto is what nothing means", "", 1, 1, 1, pacerSleep},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			want := row.want
			if row.kind != pacerSpin && !haveNanosleep {
				want = pacerSleep
			}
			require.Equal(t, want, choosePacer(row.kind, row.producers, row.rate, row.cores))
		})
	}
}

func TestSleepPacerOnAVirtualClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		p := newPacer(pacerSleep, clock)
		defer p.close()
		due := clock.Now() + int64(1234*time.Microsecond)
		require.True(t, p.wait(t.Context(), due))
		require.Equal(t, due, clock.Now(), "never late there")
		require.True(t, p.wait(t.Context(), due-1), "what is overdue is not waited for")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, p.wait(ctx, due+int64(time.Hour)))
	})
}

func TestPacersOnTheRealClock(t *testing.T) {
	for _, kind := range []string{pacerSleep, pacerNanosleep, pacerSpin} {
		t.Run(kind, func(t *testing.T) {
			clock := NewClock()
			p := newPacer(kind, clock)
			defer p.close()
			for _, ahead := range []time.Duration{50 * time.Microsecond, time.Millisecond, 4 * time.Millisecond} {
				due := clock.Now() + int64(ahead)
				require.True(t, p.wait(t.Context(), due))
				require.GreaterOrEqual(t, clock.Now(), due, "never early")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			require.False(t, p.wait(ctx, clock.Now()+int64(time.Hour)), "the context ends the wait")
		})
	}
}

// standing is a clock on which a due time never comes.
type standing struct{}

func (standing) Now() int64 { return 0 }

func TestPacersEndWithTheirContextNearADueTime(t *testing.T) {
	for _, kind := range []string{pacerSleep, pacerNanosleep, pacerSpin} {
		t.Run(kind, func(t *testing.T) {
			p := newPacer(kind, standing{})
			defer p.close()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.False(t, p.wait(ctx, int64(time.Millisecond)), "in the last stretch, which the finer ones do not spend on a timer")
		})
	}
}
