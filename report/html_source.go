package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kbench/kbench/results"
)

// sourcePage is the configuration of one result and where its figures came from.
type sourcePage struct {
	Name       string
	Provenance []labelled
	Overrides  []string
	Given      string
	Effective  string
	Settings   []labelled
	Topics     *table
	Runs       *table
}

func newSourcePage(src *source) sourcePage {
	r := src.result
	return sourcePage{
		Name: src.name, Provenance: provenanceFacts(r), Overrides: r.Workload.Overrides, Given: r.Workload.Given,
		Effective: indented(r.Workload.Effective), Settings: settingFacts(r.Settings), Topics: topicTable(r), Runs: runTable(r),
	}
}

// provenanceFacts say what was measured, from where, and with what.
func provenanceFacts(r *results.Result) []labelled {
	h, c := r.Provenance.Host, r.Provenance.Cluster
	facts := []labelled{
		{"started", r.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"workload", r.Workload.Name},
		{"hash", r.Workload.Hash},
		{"seed", fmt.Sprint(r.Seed)},
		{"cluster", clusterLine(c)},
		{"bootstrap", strings.Join(c.Bootstrap, ", ")},
		{"cluster id", c.ClusterID},
		{"security", strings.TrimSpace(c.SecurityProtocol + "  " + c.SASLMechanism)},
	}
	for _, b := range c.Brokers {
		facts = append(facts, labelled{fmt.Sprintf("broker %d", b.ID), brokerLine(b, c.Version)})
	}
	facts = append(facts, brokerSettings(c.Brokers)...)
	facts = append(facts, labelled{"not told", strings.Join(c.Notes, "; ")})
	facts = append(facts,
		labelled{"kbench", strings.TrimSpace(r.Provenance.KbenchVersion + "  " + h.GoVersion)},
		labelled{"host", h.Hostname},
		labelled{"system", strings.TrimSpace(h.OS + " " + h.Kernel)},
		labelled{"cpu", cpuLine(h)},
		labelled{"memory", memoryLine(h)},
		labelled{"clock", clockLine(h)},
	)
	facts = append(facts, ceilingProvenance(r)...)
	return slices.DeleteFunc(facts, func(f labelled) bool { return strings.TrimSpace(f.Text) == "" })
}

// brokerLine is where a broker is, and its release where that is not the cluster's.
func brokerLine(b results.Broker, version string) string {
	parts := []string{b.Addr, b.Rack}
	if b.Version != "" && b.Version != version {
		parts = append(parts, "Kafka "+b.Version)
	}
	return strings.TrimSpace(strings.Join(parts, "  "))
}

// brokerSettings are those that are not defaults, once for all brokers that have the same value.
func brokerSettings(brokers []results.Broker) []labelled {
	const most = 50 // result.json has them all
	type setting struct{ name, value string }
	by := map[setting][]string{}
	for _, b := range brokers {
		for name, value := range b.Config {
			by[setting{name, value}] = append(by[setting{name, value}], fmt.Sprint(b.ID))
		}
	}
	list := slices.SortedFunc(maps.Keys(by), func(a, b setting) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(by[a][0], by[b][0]), cmp.Compare(a.value, b.value))
	})
	var facts []labelled
	for i, s := range list {
		if i == most {
			facts = append(facts, labelled{"", fmt.Sprintf("… and %d more settings of brokers, in result.json", len(list)-most)})
			break
		}
		text := s.name + "=" + s.value
		if len(by[s]) < len(brokers) {
			text += " (broker " + strings.Join(by[s], ", ") + ")"
		}
		label := ""
		if i == 0 {
			label = "broker settings"
		}
		facts = append(facts, labelled{label, text})
	}
	return facts
}

func cpuLine(h results.Host) string {
	if h.CPUs == 0 {
		return ""
	}
	text := fmt.Sprintf("%s × %d, GOMAXPROCS %d", h.CPUModel, h.CPUs, h.GOMAXPROCS)
	if h.CgroupCPUs > 0 {
		text += ", cgroup limit " + digits(h.CgroupCPUs, 3) + " cores"
	}
	return text
}

func memoryLine(h results.Host) string {
	if h.MemoryBytes == 0 {
		return ""
	}
	text := memory(h.MemoryBytes)
	if h.CgroupMemory > 0 {
		text += ", cgroup limit " + memory(h.CgroupMemory)
	}
	return text
}

func clockLine(h results.Host) string {
	parts := []string{h.ClockSource}
	if h.ClockReadNs > 0 {
		parts = append(parts, "one reading takes "+duration(float64(h.ClockReadNs)))
	}
	if h.TimerErrorNs > 0 {
		parts = append(parts, "a sleep of 1 ms is "+duration(float64(h.TimerErrorNs))+" late")
	}
	return strings.TrimPrefix(strings.Join(parts, ", "), ", ")
}

// settingFacts are the client settings in effect, by key.
func settingFacts(settings map[string]any) []labelled {
	var facts []labelled
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		facts = append(facts, labelled{key, settingText(settings[key])})
	}
	return facts
}

// topicTable has the topics of all runs with what changed under them.
func topicTable(r *results.Result) *table {
	t := &table{Caption: "Topics", Head: []string{"point", "run", "topic", "partitions", "replicas", "leaders", "in sync", "configuration"}}
	const most = 100
	for _, p := range r.Points {
		for _, run := range p.Runs {
			for _, topic := range run.Topics {
				if len(t.Rows) == most {
					t.Caption = fmt.Sprintf("Topics: the first %d; result.json has all", most)
					return t
				}
				t.Rows = append(t.Rows, tableRow{Swatch: -1, Cells: []string{p.ID, fmt.Sprint(run.Repeat + 1), topic.Name,
					fmt.Sprint(topic.Partitions), fmt.Sprint(topic.ReplicationFactor),
					beforeAfter(topic.LeadersBefore, topic.LeadersAfter), beforeAfter(topic.ISRBefore, topic.ISRAfter), configText(topic.Config)}})
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// beforeAfter says whether something stayed as it was during a run.
func beforeAfter[T comparable](before, after []T) string {
	switch {
	case len(before) == 0 && len(after) == 0:
		return "–"
	case slices.Equal(before, after):
		return strings.Trim(fmt.Sprint(firstOf(before, 24)), "[]")
	}
	return strings.Trim(fmt.Sprint(firstOf(before, 24)), "[]") + " → " + strings.Trim(fmt.Sprint(firstOf(after, 24)), "[]")
}

func firstOf[T any](all []T, n int) []T { return all[:min(n, len(all))] }

func configText(config map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		parts = append(parts, key+"="+config[key])
	}
	return strings.Join(parts, " ")
}

// runTable lists the runs in the order they were executed, with their files.
func runTable(r *results.Result) *table {
	t := &table{Caption: "Runs in order of execution", Head: []string{"order", "point", "run", "started", "measured", "verdict", "log", "timeline", "lag"}}
	type executed struct {
		point *results.Point
		run   *results.Run
	}
	var all []executed
	for i := range r.Points {
		for j := range r.Points[i].Runs {
			all = append(all, executed{&r.Points[i], &r.Points[i].Runs[j]})
		}
	}
	slices.SortStableFunc(all, func(a, b executed) int { return a.run.Order - b.run.Order })
	for _, e := range all {
		verdict := "valid"
		if !e.run.Verdict.Valid {
			verdict = "INVALID"
		}
		t.Rows = append(t.Rows, tableRow{Swatch: -1, Cells: []string{fmt.Sprint(e.run.Order + 1), e.point.ID, fmt.Sprint(e.run.Repeat + 1),
			e.run.StartedAt.UTC().Format("15:04:05"), duration(float64(e.run.ElapsedNs)), verdict, e.run.Log, e.run.Timeline, e.run.Lags}})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// indented is JSON made readable, or as it is when it is none.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}
