package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runBound is the longest that one program may take.
const runBound = 5 * time.Minute

// program is an executable that is measured.
type program struct {
	path  string
	env   []string
	takes func(flag string) bool
}

// programs are those there are. Peers may be nil.
type programs struct{ ours, peers *program }

// ourProgram is this test binary.
func ourProgram() (*program, error) {
	path, err := os.Executable()
	return &program{path: path, env: []string{programEnv + "=1"}, takes: func(string) bool { return true }}, err
}

var flagInHelp = regexp.MustCompile(`(?m)^\s+-(\S+)`)

// buildPeers builds the peers' program out of dir, into a folder that goes with the caller.
func buildPeers(ctx context.Context, dir, into string) (*program, error) {
	if _, err := os.Stat(filepath.Join(dir, "peer")); err != nil {
		return nil, fmt.Errorf("peers: %w: expected is a Go module with a package ./peer", err)
	}
	path := filepath.Join(into, "peer")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./peer")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the peers: %w\n%s", err, out)
	}
	help, err := exec.CommandContext(ctx, path, "-h").CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) { // -h may end with a status
		return nil, fmt.Errorf("asking the peers for their flags: %w", err)
	}
	known := map[string]bool{}
	for _, m := range flagInHelp.FindAllSubmatch(help, -1) {
		known[string(m[1])] = true
	}
	return &program{path: path, takes: func(flag string) bool { return known[flag] }}, nil
}

func (p programs) of(lib string) *program {
	if lib == "kbench" {
		return p.ours
	}
	return p.peers
}

// run runs a program once and returns what it printed. The figures must be about all of s.N.
func (p *program) run(ctx context.Context, s settings) (line, error) {
	ctx, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, s.args(p.takes)...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.WaitDelay = time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("given up after %s: %w", runBound, ctx.Err())
		}
		return nil, fmt.Errorf("%s %s: %w: %s", s.Lib, s.Mode, err, firstLine(problems.String()))
	}
	l := parseLine(out.String())
	if l["n"] < float64(s.N) { // who reads in batches reads more
		return nil, fmt.Errorf("%s %s: did %.0f of %d: it may not know this mode", s.Lib, s.Mode, l["n"], s.N)
	}
	return l, nil
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Sprintf("%.300s", first)
}
