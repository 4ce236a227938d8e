package compare

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kbench/kbench/results"
)

// Difference is something that two results do not share beside what is compared.
type Difference struct {
	// What is "workload", a key of it ("payload.size"), "cluster", "host" or a part of these.
	What string `json:"what"`
	Base string `json:"base"`
	New  string `json:"new"`
	// Decisive ones make a gate refuse: what is found may be theirs.
	Decisive bool `json:"decisive"`
}

// String is the difference in one line.
func (d Difference) String() string { return fmt.Sprintf("%s: %s, then %s", d.What, d.Base, d.New) }

// maxDifferences is how many keys of two workloads are named.
const maxDifferences = 12

// Unlike names what is different in the work done and in where it was done, the work first.
func Unlike(base, other *results.Result) []Difference {
	list := append([]Difference{}, workloadDifferences(base.Workload, other.Workload)...)
	add := func(what string, a, b any, decisive bool) {
		if !reflect.DeepEqual(a, b) {
			list = append(list, Difference{what, text(a), text(b), decisive})
		}
	}
	p, q := base.Provenance, other.Provenance
	add("cluster", clusterName(p.Cluster), clusterName(q.Cluster), true)
	add("brokers", len(p.Cluster.Brokers), len(q.Cluster.Brokers), true)
	add("Kafka version", p.Cluster.Version, q.Cluster.Version, false)
	add("security", p.Cluster.SecurityProtocol, q.Cluster.SecurityProtocol, true)
	add("SASL mechanism", p.Cluster.SASLMechanism, q.Cluster.SASLMechanism, true)
	add("host", p.Host.Hostname, q.Host.Hostname, true)
	add("CPU", p.Host.CPUModel, q.Host.CPUModel, true)
	add("CPUs", p.Host.CPUs, q.Host.CPUs, true)
	add("CPUs it may use", p.Host.GOMAXPROCS, q.Host.GOMAXPROCS, true)
	add("CPU quota", p.Host.CgroupCPUs, q.Host.CgroupCPUs, true)
	add("memory", p.Host.MemoryBytes, q.Host.MemoryBytes, false)
	add("system", p.Host.OS+" "+p.Host.Kernel, q.Host.OS+" "+q.Host.Kernel, false)
	add("clock source", p.Host.ClockSource, q.Host.ClockSource, false)
	add("kbench", p.KbenchVersion+" "+p.Host.GoVersion, q.KbenchVersion+" "+q.Host.GoVersion, false)
	return list
}

// clusterName is what a cluster is known by: its id, which the embedded broker has as well.
func clusterName(c results.Cluster) string {
	switch {
	case c.Embedded:
		return "embedded broker"
	case c.ClusterID != "":
		return c.ClusterID
	}
	return strings.Join(c.Bootstrap, ",")
}

// workloadDifferences are the keys in effect that differ, when the hashes do.
func workloadDifferences(a, b results.Workload) []Difference {
	if a.Hash == b.Hash && a.Hash != "" {
		return nil
	}
	x, y := flatten(a.Effective), flatten(b.Effective)
	var keys []string
	for _, m := range []map[string]string{x, y} {
		for key := range m {
			if x[key] != y[key] && !slices.Contains(keys, key) && !idle(key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	var list []Difference
	for _, key := range keys {
		list = append(list, Difference{key, orDefault(x, key), orDefault(y, key), true})
	}
	switch n := len(list); {
	case n == 0:
		list = []Difference{{"workload", orNone(a.Hash), orNone(b.Hash), true}}
	case n > maxDifferences:
		more := strconv.Itoa(n-maxDifferences) + " keys more"
		list = append(list[:maxDifferences], Difference{"workload", more, "other values", true})
	}
	return list
}

// idle are the keys that do not change the load; the hash leaves them out as well.
func idle(key string) bool {
	root, _, _ := strings.Cut(key, ".")
	return key == "topics.keep" || slices.Contains([]string{"name", "description", "seed", "repeat", "thresholds", "validity"}, root)
}

// flatten is a workload in effect as keys with texts; the client's settings lose their prefix.
func flatten(effective json.RawMessage) map[string]string {
	var parsed any
	out := map[string]string{}
	if json.Unmarshal(effective, &parsed) != nil {
		return out
	}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			out[strings.TrimPrefix(prefix, "client.")] = text(v)
			return
		}
		for key, inner := range m {
			walk(strings.TrimPrefix(prefix+"."+key, "."), inner)
		}
	}
	walk("", parsed)
	return out
}

func orDefault(m map[string]string, key string) string {
	if v, ok := m[key]; ok {
		return orNone(v)
	}
	return "the default"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// text is a value as people write it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return orNone(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(encoded)
}
