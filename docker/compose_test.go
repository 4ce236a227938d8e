// Package docker_test checks what cannot be run where there is no docker engine: the compose
// files, the Dockerfile, the example workflows, and the answers of the script that starts Kafka without
// docker. The workflows' commands are run as they stand.
package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// composeFiles are the files with the number of nodes each starts.
var composeFiles = map[string]int{"compose.1.yaml": 1, "compose.3.yaml": 3}

type service struct {
	Image       string            `yaml:"image"`
	Hostname    string            `yaml:"hostname"`
	Ports       []string          `yaml:"ports"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
}

// schemaIn compiles a JSON Schema of testdata.
func schemaIn(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	document, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource(name, document))
	schema, err := compiler.Compile(name)
	require.NoError(t, err)
	return schema
}

// asJSON gives YAML the shape that a JSON Schema is checked on.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	converted, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(converted)))
	require.NoError(t, err)
	return document
}

func TestComposeFilesFollowTheSchema(t *testing.T) {
	schema := schemaIn(t, "compose-spec.json")
	for name := range composeFiles {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, schema.Validate(asJSON(t, text)), name)
	}
	wrong := "services: {kafka: {image: x, portz: [\"9092:9092\"]}}"
	require.Error(t, schema.Validate(asJSON(t, []byte(wrong))), "the schema must be able to say no")
}

func TestComposeNodesFitTogether(t *testing.T) {
	for name, nodes := range composeFiles {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			var file struct {
				Services map[string]service `yaml:"services"`
				Volumes  map[string]any     `yaml:"volumes"`
			}
			require.NoError(t, yaml.Unmarshal(text, &file))
			require.Len(t, file.Services, nodes)
			var voters []string
			for i := 1; i <= nodes; i++ {
				voters = append(voters, fmt.Sprintf("%d@kafka-%d:29093", i, i))
			}
			for i := 1; i <= nodes; i++ {
				host := fmt.Sprintf("kafka-%d", i)
				node, ok := file.Services[host]
				require.True(t, ok, host)
				require.Contains(t, file.Volumes, host)
				checkNode(t, node, i, host, strings.Join(voters, ","))
				require.Contains(t, string(text), node.advertised("HOST"), "the comment tells the bootstrap list")
			}
		})
	}
}

// advertised is where a listener tells clients to go.
func (s service) advertised(listener string) string {
	for one := range strings.SplitSeq(s.Environment["KAFKA_ADVERTISED_LISTENERS"], ",") {
		if where, ok := strings.CutPrefix(one, listener+"://"); ok {
			return where
		}
	}
	return ""
}

func checkNode(t *testing.T, node service, id int, host, voters string) {
	t.Helper()
	require.Equal(t, "apache/kafka:"+scriptVersion(t), node.Image, "the same Kafka as docker/kafka starts")
	require.Equal(t, host, node.Hostname)
	require.Equal(t, fmt.Sprint(id), node.Environment["KAFKA_NODE_ID"])
	require.Equal(t, voters, node.Environment["KAFKA_CONTROLLER_QUORUM_VOTERS"])
	_, port, _ := strings.Cut(node.advertised("HOST"), ":")
	require.Equal(t, []string{"127.0.0.1:" + port + ":" + port}, node.Ports, "published where it is advertised, on loopback")
	require.Contains(t, node.Environment["KAFKA_LISTENERS"], "HOST://:"+port+",")
	require.Equal(t, host+":29092", node.advertised("BROKER"))
	require.Equal(t, []string{host + ":" + node.Environment["KAFKA_LOG_DIRS"]}, node.Volumes)
}

func scriptVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("kafka")
	require.NoError(t, err)
	found := regexp.MustCompile(`KAFKA_VERSION:-([0-9.]+)`).FindSubmatch(text)
	require.NotNil(t, found)
	return string(found[1])
}

func TestDockerfileBuildsWhatGoModAsksFor(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	release := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.NotNil(t, release)
	require.Contains(t, string(text), "FROM golang:"+string(release[1])+"-")
	require.Contains(t, string(text), "\nUSER 65532:65532\n", "it does not run as root")
	require.Contains(t, string(text), "go build", "./cmd/kbench")
}

func TestScriptAnswersWithoutStartingAnything(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  string
		code int
		says string
	}{
		{"help", []string{"-h"}, "", 0, "docker/kafka up 3"},
		{"no command is help", nil, "", 0, "usage: docker/kafka COMMAND"},
		{"an unknown command", []string{"upp"}, "", 2, "unknown command 'upp'"},
		{"a size that is none", []string{"up", "2"}, "", 2, "1 or 3 nodes, not '2'"},
		{"a port that is none", []string{"up"}, "KAFKA_PORT=http", 2, "do not fit in 1 to 65535"},
		{"ports beyond the last", []string{"up", "3"}, "KAFKA_PORT=65530", 2, "do not fit in 1 to 65535"},
		{"a node of no cluster", []string{"stop", "1"}, "", 1, "start one with: docker/kafka up 1"},
		{"status of no cluster", []string{"status"}, "", 1, "no cluster in"},
		{"down where nothing runs", []string{"down"}, "", 0, ""},
		{"wipe where nothing is", []string{"wipe"}, "", 0, ""},
		{"no tool", []string{"tool"}, "", 2, "which tool?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("bash", append([]string{"./kafka"}, tt.args...)...)
			cmd.Env = append(os.Environ(), "KAFKA_DIR="+t.TempDir()+"/k", tt.env)
			out, err := cmd.CombinedOutput()
			code := cmd.ProcessState.ExitCode()
			require.Equal(t, tt.code, code, "%s %v", out, err)
			require.Contains(t, string(out), tt.says)
		})
	}
}
