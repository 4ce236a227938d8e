package broker

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// helperEnv marks a test binary that is to be a broker.
const helperEnv = "KBENCH_TEST_BE_BROKER"

// MaybeServeChild turns a test binary that ForTest started into a broker process, which never
// returns; in every other process it does nothing. Call it first in TestMain:
//
//	func TestMain(m *testing.M) {
//		broker.MaybeServeChild()
//		os.Exit(m.Run()) // or goleak.VerifyTestMain(m)
//	}
func MaybeServeChild() {
	if os.Getenv(helperEnv) == "" {
		return
	}
	if err := serveAsChild(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ForTest makes a child out of the test binary itself, whose TestMain must call
// MaybeServeChild.
func ForTest(o Options) ChildOptions {
	return ChildOptions{Options: o, Args: []string{}, Env: []string{helperEnv + "=1"}}
}

// serveAsChild reads the arguments that StartChild gives and serves.
func serveAsChild(args []string) error {
	var o Options
	fs := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	o.AddFlags(fs)
	lifeline := fs.Bool(LifelineFlag, false, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *lifeline {
		return Main(ctx, o, os.Stdin, os.Stdout, os.Stderr)
	}
	return Main(ctx, o, nil, os.Stdout, os.Stderr)
}
