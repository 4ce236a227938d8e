package bench

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// programEnv makes this test binary the program that is measured.
const programEnv = "KBENCH_BENCH_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := runProgram(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
