package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/kbench/kbench"

// none is a rule's word for "no package of kbench at all".
const none = "…"

// importRules is the table of imports, the longest matching prefix first. Each rule holds for
// the package at its path and for those below it that have no rule of their own. Tests may
// import what they like of the module.
var importRules = []struct {
	pkg  string
	deny []string // packages of kbench, with what is below them unless marked $; none: all
	free []string // exceptions to deny, themselves only
	std  []string // packages of the standard library that must not be imported
	ext  []string // prefixes of other modules that must not be imported
	why  string
}{
	{pkg: "client/internal/conn", deny: []string{"client$", "workloads", "report", "results"},
		free: []string{"results/hist"}, why: "a connection knows nothing of the client above it"},
	{pkg: "client/internal", deny: []string{"workloads", "report", "results"}, free: []string{"results/hist"},
		why: "the client stands by itself"},
	{pkg: "client/record", deny: []string{none}, std: []string{"net", "net/http", "os"}, why: "record batches are pure"},
	{pkg: "client/security", deny: []string{"client/internal", "workloads", "report", "results"},
		why: "how to connect is read for the client's public Config"},
	{pkg: "client/settings", deny: []string{none}, std: []string{"net"}, why: "settings are a leaf that client and workloads share"},
	{pkg: "client/prom", deny: []string{"client/internal", "workloads", "report", "results"}, free: []string{"results/hist"},
		why: "metrics are shown from the client's public ones"},
	{pkg: "client", deny: []string{"client/security", "client/prom", "workloads", "report", "results"},
		free: []string{"results/hist"}, ext: []string{"github.com/prometheus"}, why: "the client stands by itself"},

	{pkg: "workloads/pace", deny: []string{none}, std: []string{"net", "os"}, why: "pacing is pure"},
	{pkg: "workloads/payload", deny: []string{none}, std: []string{"net", "os", "time"}, why: "payloads are pure"},
	{pkg: "workloads/plan", deny: []string{"client", "workloads/run", "results", "report"}, free: []string{"client/settings"},
		why: "a plan is made without running anything"},
	{pkg: "workloads/condition", deny: []string{"client", "report", "workloads/run"}, free: []string{"client/settings"}, std: []string{"net", "os", "time"},
		why: "a condition is judged by a result's figures alone"},
	{pkg: "workloads/broker", deny: []string{"client", "results", "report"}, free: []string{"client/settings"},
		why: "the embedded broker is independent of what it serves"},
	{pkg: "workloads/run/kafka", deny: []string{"report"}, why: "running knows nothing of reporting"},
	{pkg: "workloads/run/synthetic", deny: []string{"client", "report"}, free: []string{"client/settings"}, why: "the scripted target has no client"},
	{pkg: "workloads/run/capacity", deny: []string{"client", "report", "workloads/run/kafka"}, free: []string{"client/settings"}, std: []string{"net", "os", "time"},
		why: "a search is pure"},
	{pkg: "workloads/run/fault", deny: []string{"report"}, why: "running knows nothing of reporting"},
	{pkg: "workloads/run", deny: []string{"report", "cmd"}, ext: []string{"github.com/vbauerster/mpb", "github.com/spf13/cobra"},
		why: "running knows neither reports nor terminals"},
	{pkg: "workloads", deny: []string{"client", "results", "report"}, free: []string{"client/settings"},
		why: "a definition is independent of who runs it"},

	{pkg: "results/hist", deny: []string{none}, why: "histograms are a leaf"},
	{pkg: "results/stat", deny: []string{none}, std: []string{"net", "os", "time"}, why: "statistics are pure"},
	{pkg: "results", deny: []string{"workloads", "client", "report"}, why: "results are read without what made them"},

	{pkg: "report", deny: []string{"client", "workloads/run"}, why: "reports are drawn from results alone"},
	{pkg: "docker", deny: []string{none}, why: "nothing of kbench is in there but tests"},
	{pkg: "cmd/kbench", why: "wires everything"},
}

// Other Kafka clients have no place in kbench's own code. kfake, the embedded broker, brings
// pieces of one along; kmsg is the protocol's messages.
var foreign = []struct{ prefix, only, why string }{
	{"github.com/twmb/franz-go/pkg/kgo", "", "kbench is a Kafka client of its own"},
	{"github.com/twmb/franz-go/pkg/kadm", "", "kbench is a Kafka client of its own"},
	{"github.com/twmb/franz-go/pkg/kfake", "workloads/broker", "the embedded broker is reached through workloads/broker"},
	{"github.com/twmb/franz-go/pkg/kversion", "workloads/broker", "request versions come from the client's own table"},
	{"github.com/twmb/franz-go/pkg/kerr", "workloads/broker", "the client classifies errors itself"},
	{"github.com/twmb/franz-go/pkg/kmsg", "client workloads/broker workloads/run/fault", "protocol messages stay below the client's surface, and in what stands between client and broker"},
	{"github.com/twmb/franz-go", "client workloads/broker", "kbench is a Kafka client of its own"},
	{"github.com/IBM/sarama", "", "kbench is a Kafka client of its own"},
	{"github.com/Shopify/sarama", "", "kbench is a Kafka client of its own"},
	{"github.com/segmentio/kafka-go", "", "kbench is a Kafka client of its own"},
	{"github.com/confluentinc/confluent-kafka-go", "", "kbench is a Kafka client of its own"},
}

// topLevel are the only folders of the module with Go code.
var topLevel = []string{"cmd", "client", "workloads", "results", "report", "docker"}

// imported is one import in one file that is not a test.
type imported struct{ pkg, path, at string }

func TestImportsFollowTheTable(t *testing.T) {
	imports, packages := moduleImports(t, filepath.Join("..", ".."))
	require.Greater(t, len(packages), 3, "the module's packages were not found")
	var wrong []string
	for _, pkg := range packages {
		if top, _, _ := strings.Cut(pkg, "/"); !slices.Contains(topLevel, top) {
			wrong = append(wrong, fmt.Sprintf("%s: there is no top-level folder but %s", pkg, strings.Join(topLevel, ", ")))
		}
		if top, _, _ := strings.Cut(pkg, "/"); top == "cmd" && pkg != "cmd/kbench" {
			wrong = append(wrong, pkg+": the only program is cmd/kbench")
		}
	}
	for _, i := range imports {
		if why := forbidden(i.pkg, i.path); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s: %s", i.at, i.pkg, i.path, why))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		t.Errorf("the table of imports is broken, see importRules and topLevel in this file:\n  %s", strings.Join(wrong, "\n  "))
	}
}

// The rules must be able to say no, and must not say it to what is needed.
func TestImportTableSaysNoWhereItShould(t *testing.T) {
	tests := []struct {
		pkg, path string
		allowed   bool
	}{
		{"client", module + "/results", false},
		{"client", module + "/results/hist", true},
		{"client", module + "/results/hist/deeper", false},
		{"client", module + "/workloads/pace", false},
		{"client", module + "/client/internal/conn", true},
		{"client/internal/conn", module + "/client", false},
		{"client/internal/conn", module + "/client/internal/wire", true},
		{"client/internal/fetch", module + "/client/internal/conn", true},
		{"client/security", module + "/client", true},
		{"client/security", module + "/client/internal/conn", false},
		{"client", module + "/client/security", false},
		{"client/record", module + "/client/settings", false},
		{"client", "github.com/prometheus/client_golang/prometheus", false},
		{"client/prom", "github.com/prometheus/client_golang/prometheus", true},
		{"client/record", "net", false},
		{"client/record", "hash/crc32", true},
		{"workloads", module + "/client", false},
		{"workloads", module + "/client/settings", true},
		{"workloads/pace", module + "/workloads", false},
		{"workloads/plan", module + "/workloads", true},
		{"workloads/plan", module + "/workloads/run", false},
		{"workloads/run", module + "/results", true},
		{"workloads/run", module + "/report", false},
		{"workloads/run/capacity", module + "/report/gate", false},
		{"workloads/run", "github.com/vbauerster/mpb/v8", false},
		{"workloads/run/kafka", module + "/client", true},
		{"workloads/run/synthetic", module + "/client", false},
		{"workloads/broker", module + "/client", false},
		{"workloads/broker", "github.com/twmb/franz-go/pkg/kfake", true},
		{"workloads/broker", "github.com/twmb/franz-go/pkg/kgo", false},
		{"workloads/run", "github.com/twmb/franz-go/pkg/kfake", false},
		{"workloads/run", "github.com/twmb/franz-go/pkg/kmsg", false},
		{"workloads/run/fault", "github.com/twmb/franz-go/pkg/kmsg", true},
		{"client/internal/conn", "github.com/twmb/franz-go/pkg/kmsg", true},
		{"client", "github.com/IBM/sarama/mocks", false},
		{"results", module + "/workloads", false},
		{"results", module + "/results/hist", true},
		{"results/hist", module + "/results", false},
		{"report/compare", module + "/results/stat", true},
		{"report/compare", module + "/workloads/run", false},
		{"report", module + "/reporting", true},
		{"cmd/kbench", module + "/client", true},
		{"cmd/kbench", "github.com/segmentio/kafka-go", false},
	}
	for _, tt := range tests {
		why := forbidden(tt.pkg, tt.path)
		require.Equal(t, tt.allowed, why == "", "%s importing %s: %q", tt.pkg, tt.path, why)
	}
}

// forbidden says why pkg (below the module's root) must not import path; empty: it may.
func forbidden(pkg, path string) string {
	for _, f := range foreign {
		if !within(path, f.prefix) {
			continue
		}
		for _, home := range strings.Fields(f.only) {
			if within(pkg, home) {
				return ""
			}
		}
		return f.why
	}
	for _, rule := range importRules {
		if !within(pkg, rule.pkg) {
			continue
		}
		own, ours := strings.CutPrefix(path, module+"/")
		switch {
		case ours && denied(rule.deny, own) && !slices.Contains(rule.free, own):
			return rule.why
		case !ours && slices.Contains(rule.std, path):
			return rule.why
		case slices.ContainsFunc(rule.ext, func(prefix string) bool { return within(path, prefix) }):
			return rule.why
		}
		return ""
	}
	return "the table has no row for " + pkg
}

func denied(deny []string, own string) bool {
	return slices.ContainsFunc(deny, func(d string) bool { return d == none || d == own+"$" || within(own, d) })
}

// within tells whether a path is prefix or below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// moduleImports parses every Go file of the module that is not a test, whatever its build tags,
// and returns its imports, and every package.
func moduleImports(t *testing.T, root string) (imports []imported, packages []string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(file, "go.mod")); file != root && err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imported{pkg: pkg, path: p, at: filepath.ToSlash(rel)})
		}
		return nil
	})
	require.NoError(t, err)
	return imports, packages
}
