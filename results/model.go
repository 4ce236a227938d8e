// Package results holds what is kept about the execution of a workload: the versioned
// model of result.json, the run directory it stands in, the HdrHistogram logs and timeline
// files beside it, and where the figures came from (provenance).
//
// Durations are integer nanoseconds, instants are UTC in RFC 3339, sizes are bytes and rates
// are per second, everywhere in the model.
package results

import (
	"encoding/json"
	"time"
)

// Schema is the version of the model written by this package. Files of every earlier version
// stay readable: version 2 added Run.Consumption and Run.Lags, version 3
// Run.Incomplete (so that a plan can be resumed), Result.Design and Result.Shards.
const Schema = 3

// Names of the series. A producer-side series has one entry per message, a request series one
// per request on a connection, SeriesE2E one per message received.
const (
	// SeriesResponse is acked − due: what a user of the cluster feels. Open loop only.
	SeriesResponse = "response"
	// SeriesService is acked − accepted: what the client and the cluster took.
	SeriesService = "service"
	// SeriesDelay is accepted − due: how far behind its schedule the generator was, or was held.
	SeriesDelay = "delay"
	// SeriesProduce is response read − request written, one per Produce request.
	SeriesProduce = "request.produce"
	// SeriesFetch is response read − request written, one per Fetch request.
	SeriesFetch = "request.fetch"
	// SeriesE2E is received − due (received − accepted in a closed loop).
	SeriesE2E = "e2e"
	// SeriesFailed is failed − due (failed − accepted in a closed loop) of the messages that
	// were refused; they are in no other series.
	SeriesFailed = "failed"
	// SeriesUnknown is the age, at the drain bound, of messages whose outcome is unknown.
	SeriesUnknown = "unknown"
	// SeriesRebalance is from when a member of a group gave partitions up to when it was assigned
	// its share anew, one for each member and rebalance.
	SeriesRebalance = "rebalance"
	// SeriesTransaction is from when a transaction was begun to when it was known to be committed, one
	// for each that was.
	SeriesTransaction = "transaction"
	// SeriesCommit is the last part of that: from when it was to be committed. What is in flight is waited
	// for first, and the producer sends nothing meanwhile.
	SeriesCommit = "commit"
)

// Result is everything kept about the execution of one workload: the content of result.json.
type Result struct {
	Schema   int      `json:"schema"`
	Workload Workload `json:"workload"`
	// Settings are the client settings in effect before any sweep, by key
	// ("producer.requiredAcks"); secrets are left out.
	Settings map[string]any `json:"settings"`
	// Seed makes plan order, payloads and keys repeatable.
	Seed       uint64     `json:"seed"`
	StartedAt  time.Time  `json:"startedAt"`
	Provenance Provenance `json:"provenance"`
	// Interrupted is true when the plan was not finished; what was finished is all here.
	Interrupted bool `json:"interrupted,omitempty"`
	// Resumed are the times at which an interrupted or failed plan was gone on with.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Design says how the points came about; nil for all combinations of a sweep.
	Design *Design `json:"design,omitempty"`
	Points []Point `json:"points"`
	// Shards are the results that this one was merged from; nil of a result that was measured.
	Shards []Shard `json:"shards,omitempty"`
	// Ceilings are what the generator can do alone: those that `kbench ceiling` measured, or that
	// the runs were held against.
	Ceilings []Ceiling `json:"ceilings,omitempty"`
	// Capacity are the searches of `kbench capacity`, in order of execution. The runs of the points
	// are then the hold runs that held.
	Capacity []Capacity `json:"capacity,omitempty"`
}

// Shard is one of several results that were measured at the same time and merged.
type Shard struct {
	// Folder is where all of it is kept, in the directory of the merged result.
	Folder     string     `json:"folder"`
	StartedAt  time.Time  `json:"startedAt"`
	Seed       uint64     `json:"seed"`
	Provenance Provenance `json:"provenance"`
}

// Resumption is one time at which a plan was gone on with.
type Resumption struct {
	At            time.Time `json:"at"`
	KbenchVersion string    `json:"kbenchVersion"`
	Kept          int       `json:"kept"` // runs that were finished by then
}

// Design says which points of a workload were run.
type Design struct {
	// Kind is "oneFactor" (each point differs from Base in one setting), "sample" (drawn by the seed) or
	// "chosen" (listed one by one).
	Kind string `json:"kind"`
	// Of is how many combinations there are in all; 0 for chosen points.
	Of   uint64 `json:"of,omitempty"`
	Base string `json:"base,omitempty"` // ID of a point
	// Text says it for people.
	Text string `json:"text"`
}

// Workload is the definition that was run.
type Workload struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Given is the YAML as the user wrote it; Overrides are the --set, --sweep, --rate …
	// applied to it, as written on the command line.
	Given     string   `json:"given"`
	Overrides []string `json:"overrides,omitempty"`
	// Effective is the definition after overrides and defaults.
	Effective json.RawMessage `json:"effective"`
	// Hash identifies the effective definition: equal hashes mean comparable work.
	Hash string `json:"hash"`
}

// Provenance says where the figures came from.
type Provenance struct {
	KbenchVersion string  `json:"kbenchVersion"`
	Host          Host    `json:"host"`
	Cluster       Cluster `json:"cluster"`
}

// Host is the machine the load came from.
type Host struct {
	Hostname string `json:"hostname"`
	// Passing says why this host is not likely to be there again: "a container named by its id". ""
	// when nothing speaks against it.
	Passing      string  `json:"passing,omitempty"`
	OS           string  `json:"os"`
	Kernel       string  `json:"kernel"`
	CPUModel     string  `json:"cpuModel"`
	CPUs         int     `json:"cpus"`
	GOMAXPROCS   int     `json:"gomaxprocs"`
	MemoryBytes  int64   `json:"memoryBytes"`
	CgroupCPUs   float64 `json:"cgroupCpus,omitempty"`        // quota in cores; 0 when unlimited
	CgroupMemory int64   `json:"cgroupMemoryBytes,omitempty"` // 0 when unlimited
	ClockSource  string  `json:"clockSource,omitempty"`
	GoVersion    string  `json:"goVersion"`
	TimerErrorNs int64   `json:"timerErrorNs,omitempty"` // p50 overshoot of a 1 ms sleep
	ClockReadNs  int64   `json:"clockReadNs,omitempty"`  // cost of one clock reading
}

// Cluster is what was measured.
type Cluster struct {
	// Embedded is true when the broker was kbench's own in-process broker; figures against it
	// say nothing about Apache Kafka.
	Embedded  bool     `json:"embedded"`
	Bootstrap []string `json:"bootstrap"`
	ClusterID string   `json:"clusterId,omitempty"`
	// Version is guessed from the API versions the brokers offer, e.g. "4.0+"; brokers do not tell.
	Version string   `json:"version,omitempty"`
	Brokers []Broker `json:"brokers,omitempty"`
	// Notes say what the cluster did not tell of itself.
	Notes []string `json:"notes,omitempty"`
	// SecurityProtocol is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SASLMechanism is one with SASL.
	// TLS and passwords cost time, so that figures differ with them. Who logged in is not kept.
	SecurityProtocol string `json:"securityProtocol,omitempty"`
	SASLMechanism    string `json:"saslMechanism,omitempty"`
	// RTTNs is the median of a few empty requests (ApiVersions) to the first broker.
	RTTNs int64 `json:"rttNs,omitempty"`
}

// Broker is one node of the cluster.
type Broker struct {
	ID   int32  `json:"id"`
	Addr string `json:"addr"`
	Rack string `json:"rack,omitempty"`
	// Version is guessed as Cluster.Version is.
	Version string `json:"version,omitempty"`
	// Config are the broker's settings that are not defaults, without secrets.
	Config map[string]string `json:"config,omitempty"`
}

// Point is one combination of settings in a sweep. A workload without a sweep has one.
type Point struct {
	// ID is short, stable and safe in a file name: "p00", "p01", …
	ID string `json:"id"`
	// Label is for people: the swept settings, "requiredAcks=all maxOpenRequests=5".
	Label string `json:"label"`
	// Settings are the swept keys and their values at this point.
	Settings map[string]any `json:"settings"`
	// Skipped says why the point was left out of the plan; it then has no runs.
	Skipped string `json:"skipped,omitempty"`
	Runs    []Run  `json:"runs"`
}
