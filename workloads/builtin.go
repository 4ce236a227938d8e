package workloads

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

//go:embed builtin/*.yaml
var builtIn embed.FS

// Info tells what a built-in workload is for.
type Info struct {
	Name string
	// Question is the sentence the description begins with: what the workload answers.
	Question string
	// Description is all of it, with what its figures mean.
	Description string
}

// BuiltIn are the workloads that come with kbench, by name.
func BuiltIn() []Info {
	var out []Info
	for _, name := range builtInNames() {
		source, _ := Source(name)
		info := Info{Name: name}
		as, _ := settings.Parse(name, []byte(source))
		for _, a := range as {
			if a.Key == "description" {
				info.Description = strings.TrimSpace(a.Value.Text())
				question, _, _ := strings.Cut(info.Description, "? ")
				info.Question = strings.TrimSuffix(question, "?") + "?"
			}
		}
		out = append(out, info)
	}
	return out
}

// Source is the YAML text of a built-in workload.
func Source(name string) (string, error) {
	if strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("%q is no built-in workload", name)
	}
	data, err := builtIn.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("%q is no built-in workload", name)
	}
	return string(data), nil
}

func builtInNames() []string {
	paths, _ := fs.Glob(builtIn, "builtin/*.yaml")
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(path, "builtin/"), ".yaml"))
	}
	return names
}
