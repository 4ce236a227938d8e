//go:build kafka

// Package kafkatest gives tests the real clusters that stand beside them; docker/README.md tells
// the variables that say where. A test whose variables are missing fails.
//
// Packages are tested at the same time: a test that stops or stalls a node takes its cluster with
// Exclusive, all others with Shared, and wait for one another.
package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds one call of the script; a node takes its time on a busy machine.
const patience = 4 * time.Minute

// Cluster is a real cluster for the length of one test.
type Cluster struct {
	// Bootstrap are the addresses of all nodes; node N, from 1, is the N-th.
	Bootstrap []string
	// Dir is the cluster's folder: configuration, data, logs.
	Dir string

	script string
}

// Shared is the cluster of one or three nodes, beside other tests.
func Shared(t testing.TB, nodes int) *Cluster {
	return take(t, strconv.Itoa(nodes), nodes, syscall.LOCK_SH)
}

// Release is a release of Kafka and a cluster of one node that runs it.
type Release struct {
	Name string // "3.9"
	*Cluster
}

// Releases are the releases that tests meet for real, the newest and the last one before Kafka 4,
// beside other tests.
func Releases(t testing.TB) []Release {
	return []Release{{"4.4", Shared(t, 1)}, {"3.9", take(t, "39", 1, syscall.LOCK_SH)}}
}

// Exclusive is the cluster for this test alone, until it ends.
func Exclusive(t testing.TB, nodes int) *Cluster {
	return take(t, strconv.Itoa(nodes), nodes, syscall.LOCK_EX)
}

func take(t testing.TB, which string, nodes, how int) *Cluster {
	name := "KBENCH_TEST_KAFKA_" + which
	c := &Cluster{
		Bootstrap: strings.Split(variable(t, name), ","), Dir: variable(t, name+"_DIR"),
		script: variable(t, "KBENCH_TEST_KAFKA_SCRIPT"),
	}
	require.Len(t, c.Bootstrap, nodes, "%s must name every node", name)
	f, err := os.Open(filepath.Join(c.Dir, "cluster"))
	require.NoError(t, err, "%s_DIR must be the folder of a cluster that docker/kafka started", name)
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // gives the lock back
	return c
}

func variable(t testing.TB, name string) string {
	v := os.Getenv(name)
	require.NotEmpty(t, v, "%s must be set for tests on a real Kafka: run them with make test", name)
	return v
}

// Script runs docker/kafka for this cluster and returns what it prints.
func (c *Cluster) Script(t testing.TB, args ...string) string {
	out, err := c.TryScript(args...)
	require.NoError(t, err)
	return out
}

// TryScript is Script for goroutines besides the test's own.
func (c *Cluster) TryScript(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.script, args...)
	cmd.Env = append(os.Environ(), "KAFKA_DIR="+c.Dir, "KAFKA_HEAP=-Xms128m -Xmx512m", "KAFKA_WAIT=200")
	cmd.WaitDelay = 5 * time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("docker/kafka %s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	return out.String(), nil
}

// PID is the process of a node.
func (c *Cluster) PID(t testing.TB, node int) int {
	text, err := os.ReadFile(filepath.Join(c.Dir, fmt.Sprintf("node-%d.pid", node)))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}
