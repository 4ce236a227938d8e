package docker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// The example workflows, what their schema is called in testdata, and what that must refuse.
var workflows = map[string]struct{ schema, wrong string }{
	"ci/github.yml": {"github-workflow.json", "on: push\njobs: {gate: {runs-on: x, stepz: []}}"},
	"ci/gitlab.yml": {"gitlab-ci.json", "gate: {script: [x], allow_failure: {exit_code: 4}}"},
}

func TestWorkflowsFollowTheSchemas(t *testing.T) {
	for name, w := range workflows {
		t.Run(name, func(t *testing.T) {
			schema := schemaIn(t, w.schema)
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, schema.Validate(asJSON(t, text)))
			require.Error(t, schema.Validate(asJSON(t, []byte(w.wrong))), "the schema must be able to say no")
			require.Contains(t, string(text), "apache/kafka:"+scriptVersion(t), "the same Kafka as docker/kafka starts")
			require.Contains(t, string(text), "go install github.com/kbench/kbench/cmd/kbench@latest")
			require.Contains(t, string(text), "1.26", "the release of Go that kbench needs")
		})
	}
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "module github.com/kbench/kbench\n")
	require.Contains(t, string(mod), "\ngo 1.26")
	require.FileExists(t, "../cmd/kbench/main.go")
}

// githubJob is a job of a workflow, as far as its commands need.
type githubJob struct {
	Env      map[string]string
	Strategy struct {
		Matrix struct{ Include []map[string]string }
	}
	Steps []struct{ Name, Uses, Run string }
}

// shell is the commands of a job with the variables they see.
type shell struct {
	commands []string
	env      map[string]string
}

// githubShell is what the job of the matrix's entry runs, the installation of kbench left out.
func githubShell(t *testing.T, on string) shell {
	t.Helper()
	var file struct {
		Env  map[string]string
		Jobs map[string]githubJob
	}
	read(t, "ci/github.yml", &file)
	job := file.Jobs["gate"]
	entry := slices.IndexFunc(job.Strategy.Matrix.Include, func(m map[string]string) bool { return m["on"] == on })
	require.GreaterOrEqual(t, entry, 0)
	s := shell{env: file.Env}
	for key, value := range job.Env {
		s.env[key] = value
		if name, is := strings.CutPrefix(value, "${{ matrix."); is {
			s.env[key] = job.Strategy.Matrix.Include[entry][strings.TrimSuffix(name, " }}")]
		}
		require.NotContains(t, s.env[key], "${{", "this test knows the matrix only")
	}
	for _, step := range job.Steps {
		if step.Run != "" && step.Name != "Install kbench" {
			require.NotContains(t, step.Run, "${{", "commands take variables, which nobody can inject code by")
			s.commands = append(s.commands, "set -e\n"+step.Run)
		}
	}
	require.Len(t, s.commands, 2)
	return s
}

// gitlabJob is a job or a template of a pipeline, as far as its commands need.
type gitlabJob struct {
	Extends      string
	Variables    map[string]string
	Script       []string
	AllowFailure struct {
		ExitCodes []int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	Artifacts struct {
		Paths   []string
		Reports struct{ Junit string }
	}
}

func gitlabShell(t *testing.T, name string) (shell, gitlabJob) {
	t.Helper()
	var file map[string]gitlabJob
	read(t, "ci/gitlab.yml", &file)
	var global struct{ Variables map[string]string }
	read(t, "ci/gitlab.yml", &global)
	job := file[name]
	template, found := file[job.Extends]
	require.True(t, found)
	s := shell{commands: []string{"set -eo pipefail\n" + strings.Join(template.Script, "\n")}, env: global.Variables}
	for key, value := range job.Variables {
		s.env[key] = value
	}
	return s, template
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

// kbench is the binary, built once.
var kbench struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if kbench.dir != "" {
		_ = os.RemoveAll(kbench.dir) // in the system's folder for such
	}
	os.Exit(code)
}

func kbenchFolder(t *testing.T) string {
	t.Helper()
	kbench.once.Do(func() {
		if kbench.dir, kbench.err = os.MkdirTemp("", "kbench-ci-"); kbench.err != nil {
			return
		}
		var out []byte
		if out, kbench.err = exec.Command("go", "build", "-o", kbench.dir+"/kbench", "../cmd/kbench").CombinedOutput(); kbench.err != nil {
			kbench.err = fmt.Errorf("go build: %w: %s", kbench.err, out)
		}
	})
	require.NoError(t, kbench.err)
	return kbench.dir
}

// quickened is the examples' workload in runs that take no longer than they must, on a machine that may
// be busy.
func quickened(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("ci/gate.yaml")
	require.NoError(t, err)
	s := string(text)
	for from, to := range map[string]string{"warmUp: 1s": "warmUp: 0s\n  interval: 100ms", "duration: 5s": "duration: 200ms", "rate: 1k": "rate: 500"} {
		require.Contains(t, s, from)
		s = strings.Replace(s, from, to, 1)
	}
	return s + "validity:\n  maxLateness: 1m\n  maxStolenShare: 1\n  maxCpuShare: 1\n  minRateShare: 0.01\n  maxPause: 1m\n"
}

// run runs the commands one after the other, as a runner does, each in a shell of its own, in a folder
// that holds a checkout. It returns the exit codes, what was said, and the folder.
func (s shell) run(t *testing.T, workload string, changes map[string]string) (codes []int, out, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "perf"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "perf", "gate.yaml"), []byte(workload), 0o644))
	env := append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KBENCH_") }),
		"PATH="+kbenchFolder(t)+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
	for _, vars := range []map[string]string{s.env, changes} {
		for key, value := range vars {
			env = append(env, key+"="+value)
		}
	}
	for _, commands := range s.commands {
		cmd := exec.Command("bash", "-c", commands)
		cmd.Dir, cmd.Env = dir, env
		said, err := cmd.CombinedOutput()
		require.NotNil(t, cmd.ProcessState, "%v", err)
		codes = append(codes, cmd.ProcessState.ExitCode())
		out += string(said)
	}
	return codes, out, dir
}

// slower is a change that no machine hides.
var slower = map[string]string{"NEW": "producer.flush.frequency=100ms"}

// bootstrapOf is what the gate's side B was run on.
func bootstrapOf(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "kbench-gate", "b", "result.json"))
	require.NoError(t, err)
	var r struct {
		Provenance struct{ Cluster struct{ Bootstrap []string } }
	}
	require.NoError(t, json.Unmarshal(text, &r))
	return r.Provenance.Cluster.Bootstrap
}

// The commands of the workflow for GitHub, on the embedded broker and, in place of the service
// container, on a broker that stands beside.
func TestGitHubWorkflow(t *testing.T) {
	t.Parallel()
	address := standingBroker(t)
	t.Run("slower", func(t *testing.T) {
		t.Parallel()
		codes, out, dir := githubShell(t, "embedded").run(t, quickened(t), slower)
		require.Equal(t, []int{3, 0}, codes, out)
		require.Contains(t, out, "\n::error file=perf/gate.yaml,line=1,title=kbench gate%3A FAIL::gate: A producer.flush.frequency=5ms")
		require.Regexp(t, `\n::error file=perf/gate.yaml,line=1,title=slower%3A response.p50::gate.*%0Abase `, out)
		summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
		require.NoError(t, err)
		require.Contains(t, string(summary), "# FAIL – gate")
		require.FileExists(t, filepath.Join(dir, "kbench-gate", "compare.html"))
	})
	t.Run("a runner that cannot measure", func(t *testing.T) {
		t.Parallel()
		codes, out, dir := githubShell(t, "embedded").run(t, strings.Replace(quickened(t), "maxPause: 1m", "maxPause: 1ns", 1), nil)
		require.Equal(t, []int{0, 0}, codes, out)
		require.Contains(t, out, "::warning title=kbench gate::no verdict (exit code 5)")
		require.FileExists(t, filepath.Join(dir, "summary.md"))
	})
	t.Run("a mistake", func(t *testing.T) {
		t.Parallel()
		codes, out, _ := githubShell(t, "embedded").run(t, quickened(t), map[string]string{"NEW": "producer.flsh=1"})
		require.Equal(t, 2, codes[0], out)
	})
	t.Run("the service", func(t *testing.T) {
		t.Parallel()
		job := githubShell(t, "kafka")
		require.Equal(t, "localhost:9092", job.env["KBENCH_BROKERS"])
		changes := map[string]string{"NEW": slower["NEW"], "KBENCH_BROKERS": address}
		codes, out, dir := job.run(t, quickened(t), changes)
		require.Equal(t, []int{3, 0}, codes, out)
		require.Equal(t, []string{address}, bootstrapOf(t, dir))
	})
}

func TestGitLabPipeline(t *testing.T) {
	t.Parallel()
	address := standingBroker(t)
	t.Run("slower", func(t *testing.T) {
		t.Parallel()
		s, job := gitlabShell(t, "kbench on the embedded broker")
		codes, out, dir := s.run(t, quickened(t), slower)
		require.Equal(t, []int{3}, codes, out)
		require.NotContains(t, job.AllowFailure.ExitCodes, 3)
		junit, err := os.ReadFile(filepath.Join(dir, job.Artifacts.Reports.Junit))
		require.NoError(t, err)
		require.Contains(t, string(junit), "<failure message=")
		for _, path := range job.Artifacts.Paths {
			require.DirExists(t, filepath.Join(dir, path))
		}
	})
	t.Run("a runner that cannot measure", func(t *testing.T) {
		t.Parallel()
		s, job := gitlabShell(t, "kbench on the embedded broker")
		codes, out, _ := s.run(t, strings.Replace(quickened(t), "maxPause: 1m", "maxPause: 1ns", 1), nil)
		require.Contains(t, job.AllowFailure.ExitCodes, codes[0], out)
		require.Equal(t, []int{5}, codes)
	})
	t.Run("the service", func(t *testing.T) {
		t.Parallel()
		s, _ := gitlabShell(t, "kbench on Apache Kafka")
		require.Equal(t, "kafka:9092", s.env["KBENCH_BROKERS"])
		changes := map[string]string{"NEW": slower["NEW"], "KBENCH_BROKERS": address}
		codes, out, dir := s.run(t, quickened(t), changes)
		require.Equal(t, []int{3}, codes, out)
		require.Equal(t, []string{address}, bootstrapOf(t, dir))
	})
}

// The service's node is told what compose.1.yaml tells its own, where it matters to a client.
func TestGitLabServiceIsReachable(t *testing.T) {
	var file map[string]struct {
		Services []struct {
			Name, Alias string
			Variables   map[string]string
		}
		Variables map[string]string
	}
	read(t, "ci/gitlab.yml", &file)
	job := file["kbench on Apache Kafka"]
	require.Len(t, job.Services, 1)
	node := job.Services[0]
	require.Equal(t, "PLAINTEXT://"+job.Variables["KBENCH_BROKERS"], node.Variables["KAFKA_ADVERTISED_LISTENERS"])
	require.Equal(t, node.Alias+":9092", job.Variables["KBENCH_BROKERS"])
	require.Contains(t, node.Variables["KAFKA_LISTENERS"], "PLAINTEXT://:9092")
	_, voter, _ := strings.Cut(node.Variables["KAFKA_CONTROLLER_QUORUM_VOTERS"], "@")
	require.Contains(t, node.Variables["KAFKA_LISTENERS"], "CONTROLLER://"+voter)
}

// standingBroker starts `kbench broker` for the length of the test and returns its address.
func standingBroker(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(kbenchFolder(t), "kbench"), "broker")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Minute
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends does not matter any more
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "it prints its address; it said %s", &said)
	return strings.TrimSpace(line)
}
