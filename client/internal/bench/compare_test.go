//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/results"
)

var (
	peersFlag   = flag.String("peers", "", "folder of the module with the other clients' program; empty: ours alone")
	roundsFlag  = flag.Int("rounds", 5, "how often every program runs")
	figuresFlag = flag.String("figures", ".", "regular expression of the figures to make")
	scaleFlag   = flag.Float64("scale", 1, "share of the messages, for trying")
	outFlag     = flag.String("json", "", "file for the figures; empty: none")
)

// TestCompare makes the figures. It fails when ours could not be run, not when a target was
// missed: that is what the report says.
func TestCompare(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	wanted, err := regexp.Compile(*figuresFlag)
	require.NoError(t, err, "-figures")
	require.Positive(t, *roundsFlag, "-rounds")
	p := bothPrograms(ctx, t)
	r := report{StartedAt: time.Now().UTC(), Host: results.HostInfo(), Rounds: *roundsFlag, Scale: *scaleFlag, Load: load()}
	if b := busy(r.Load); b != "" {
		fmt.Fprintln(os.Stderr, b)
		defer fmt.Fprintln(os.Stderr, b)
	}
	var ourFailures []error
	for _, f := range figures() {
		if !wanted.MatchString(f.id) {
			continue
		}
		o := f.scaled(*scaleFlag).compare(ctx, p, *roundsFlag, os.Stderr)
		s := o.summarise()
		s.write(os.Stdout, *roundsFlag)
		r.Figures = append(r.Figures, s)
		if *outFlag != "" { // after every figure: an early end keeps what there is
			require.NoError(t, save(*outFlag, &r))
		}
		ourFailures = append(ourFailures, o.oursFailed()...)
		require.NoError(t, ctx.Err())
	}
	require.NotEmpty(t, r.Figures, "-figures %s: no figure has a name like this", *figuresFlag)
	require.Empty(t, ourFailures)
}

func bothPrograms(ctx context.Context, t *testing.T) programs {
	var p programs
	var err error
	p.ours, err = ourProgram()
	require.NoError(t, err)
	if *peersFlag != "" {
		p.peers, err = buildPeers(ctx, *peersFlag, t.TempDir())
		require.NoError(t, err)
	}
	return p
}
