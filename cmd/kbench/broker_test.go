package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kbench/kbench/workloads/broker"
)

// brokerRoot is a program with the one subcommand.
func brokerRoot() *cobra.Command {
	root := &cobra.Command{Use: "kbench", SilenceErrors: true}
	root.AddCommand(newBrokerCommand())
	return root
}

func TestBrokerCommandServesUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	root := brokerRoot()
	root.SetArgs([]string{"broker", "--nodes", "2", "--topics", "a:3,b"})
	out, in := io.Pipe()
	var greeting bytes.Buffer
	root.SetOut(in)
	root.SetErr(&greeting)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()

	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addresses := strings.Split(strings.TrimSpace(line), ",")
	require.Len(t, addresses, 2)
	for _, a := range addresses {
		require.True(t, strings.HasPrefix(a, "127.0.0.1:"), a)
	}
	cancel()
	require.NoError(t, <-ended)
	require.Contains(t, greeting.String(), "stop with Ctrl-C")
}

func TestBrokerCommandEndsWithItsParent(t *testing.T) {
	root := brokerRoot()
	root.SetArgs([]string{"broker", "--" + broker.LifelineFlag})
	root.SetIn(strings.NewReader(""))
	root.SetOut(io.Discard)
	require.NoError(t, root.Execute())
}

func TestBrokerCommandRefusesWhatCannotBe(t *testing.T) {
	tests := []struct {
		name string
		args []string
		err  string
	}{
		{"an argument", []string{"x"}, "unknown command"},
		{"a port that is none", []string{"--port", "70000"}, "do not fit in 1 to 65535"},
		{"too many nodes", []string{"--nodes", "1000"}, "possible are 1 to 100"},
		{"a topic without a number", []string{"--topics", "a:x"}, "NAME:PARTITIONS"},
		{"a release that never was", []string{"--kafka-version", "9.99"}, "no known release"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := brokerRoot()
			root.SetArgs(append([]string{"broker"}, tt.args...))
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			require.ErrorContains(t, root.Execute(), tt.err)
		})
	}
}

func TestBrokerHelpTeaches(t *testing.T) {
	root := brokerRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"broker", "--help"})
	require.NoError(t, root.Execute())
	for _, part := range []string{"first line on standard output", "kbench broker --port 9092 --nodes 3", "--discard", "no throughput reference"} {
		require.Contains(t, out.String(), part)
	}
	require.NotContains(t, out.String(), broker.LifelineFlag, "that flag is not for people")
}

// brokerCommandEnv makes the test binary run the broker command, see brokerProcess.
const brokerCommandEnv = "KBENCH_TEST_BROKER_COMMAND"

// TestBrokerProcess is no test but the process that TestInterruptedBrokerExitsWithZero starts.
func TestBrokerProcess(t *testing.T) {
	if os.Getenv(brokerCommandEnv) == "" {
		return
	}
	root := brokerRoot()
	root.SetArgs([]string{"broker"})
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestInterruptedBrokerExitsWithZero(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestBrokerProcess$")
			cmd.Env = append(os.Environ(), brokerCommandEnv+"=1")
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "127.0.0.1:")
			require.NoError(t, cmd.Process.Signal(signal))
			err = cmd.Wait()
			var exit *exec.ExitError
			require.False(t, errors.As(err, &exit), "exit: %v", err)
		})
	}
}
