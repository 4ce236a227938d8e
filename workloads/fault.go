package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// FaultKind is what a fault does.
type FaultKind string

// The kinds of faults. All but FaultLeader and FaultError are done to connections, by a proxy between
// kbench and the brokers.
const (
	FaultCut       FaultKind = "cut"       // open connections are cut; with a length, new ones are refused meanwhile
	FaultDelay     FaultKind = "delay"     // what is sent and answered arrives later
	FaultStall     FaultKind = "stall"     // nothing arrives until it is over; nothing is lost
	FaultBandwidth FaultKind = "bandwidth" // a connection carries so many bytes a second each way
	FaultLeader    FaultKind = "leader"    // another replica becomes the leader, by the admin API
	FaultError     FaultKind = "error"     // the embedded broker answers requests with an error code
)

// All stands for every broker, or every partition, of a fault; as FaultTo for the next replica.
const All int32 = -1

// First stands for the broker with the lowest id, of a fault that is done to connections: the one that is
// there in every cluster.
const First int32 = -2

// Fault is something that happens at a time of the measured phase. In a file it is {at: 10s, kind:
// stall, for: 2s, broker: 1}, in one word "at=10s kind=stall for=2s broker=1".
type Fault struct {
	At   time.Duration // since the start of the measured phase
	Kind FaultKind
	For  time.Duration // 0: at once over
	// Broker is the node whose connections, or whose answers, are meant; All: of every one; First.
	Broker int32
	// Partition of every topic of the run, for FaultLeader and FaultError; All: all.
	Partition int32
	To        int32         // FaultLeader: the node that is to lead; All: the next replica
	Delay     time.Duration // FaultDelay: added to every request, half of it each way
	Jitter    time.Duration // FaultDelay: at most so much more, at random
	// BytesPerSecond is FaultBandwidth's bound of each direction of a connection.
	BytesPerSecond int64
	Request        string // FaultError: name of the request, e.g. Produce
	Code           string // FaultError: name of the error, e.g. NOT_LEADER_OR_FOLLOWER
}

// faultKinds say what each kind takes beside at and kind, and what of it is needed.
var faultKinds = []struct {
	kind          FaultKind
	takes, needed []string
}{
	{FaultCut, []string{"for", "broker"}, nil},
	{FaultDelay, []string{"for", "broker", "delay", "jitter"}, []string{"for", "delay"}},
	{FaultStall, []string{"for", "broker"}, []string{"for"}},
	{FaultBandwidth, []string{"for", "broker", "bytesPerSecond"}, []string{"for", "bytesPerSecond"}},
	{FaultLeader, []string{"partition", "to"}, nil},
	{FaultError, []string{"for", "broker", "partition", "request", "code"}, []string{"for", "request", "code"}},
}

// Proxied says whether the fault is done to connections.
func (f Fault) Proxied() bool {
	return f.Kind != FaultLeader && f.Kind != FaultError
}

// pairs are the keys and values that are not left out.
func (f Fault) pairs() [][2]string {
	list := [][2]string{{"at", settings.FormatDuration(f.At)}, {"kind", string(f.Kind)}}
	add := func(key, value string, given bool) {
		if given {
			list = append(list, [2]string{key, value})
		}
	}
	add("for", settings.FormatDuration(f.For), f.For != 0)
	add("broker", map[bool]string{true: first, false: strconv.Itoa(int(f.Broker))}[f.Broker == First], f.Broker != All)
	add("partition", strconv.Itoa(int(f.Partition)), f.Partition != All)
	add("to", strconv.Itoa(int(f.To)), f.To != All)
	add("delay", settings.FormatDuration(f.Delay), f.Delay != 0)
	add("jitter", settings.FormatDuration(f.Jitter), f.Jitter != 0)
	add("bytesPerSecond", strconv.FormatInt(f.BytesPerSecond, 10), f.BytesPerSecond != 0)
	add("request", f.Request, f.Request != "")
	add("code", f.Code, f.Code != "")
	return list
}

// MarshalText is the fault in one word, as UnmarshalText reads it.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String is the fault in one word: "at=10s kind=stall for=2s".
func (f Fault) String() string {
	var parts []string
	for _, p := range f.pairs() {
		parts = append(parts, p[0]+"="+p[1])
	}
	return strings.Join(parts, " ")
}

// first is First in a file.
const first = "first"

const faultForm = `write it like {at: 10s, kind: stall, for: 2s} or "at=10s kind=stall for=2s"`

// UnmarshalText reads "at=10s kind=stall for=2s broker=1".
func (f *Fault) UnmarshalText(text []byte) error {
	given := map[string]string{}
	for _, part := range strings.Fields(string(text)) {
		key, value, found := strings.Cut(part, "=")
		if !found {
			return fmt.Errorf("%.60q is no fault; %s", text, faultForm)
		}
		if _, twice := given[key]; twice {
			return fmt.Errorf("%s is given twice", key)
		}
		given[key] = value
	}
	return f.set(given)
}

// UnmarshalEntries reads {at: 10s, kind: stall, for: 2s, broker: 1}.
func (f *Fault) UnmarshalEntries(entries []settings.Assignment) error {
	given := map[string]string{}
	for _, e := range entries {
		if e.Value.IsList() || e.Value.IsMap() || e.Value.IsNull() {
			return fmt.Errorf("%s needs a value; %s", e.Key, faultForm)
		}
		given[e.Key] = e.Value.Text()
	}
	return f.set(given)
}

// set checks the keys that were given and takes their values.
func (f *Fault) set(given map[string]string) error {
	name := given["kind"]
	if name == "" {
		return fmt.Errorf("a fault needs a kind; %s", faultForm)
	}
	var kinds []string
	for _, k := range faultKinds {
		kinds = append(kinds, string(k.kind))
		if string(k.kind) == name {
			if err := keysOf(given, name, k.takes, append([]string{"at"}, k.needed...)); err != nil {
				return err
			}
			return f.take(given)
		}
	}
	if near := settings.Nearest(name, kinds); near != "" {
		return fmt.Errorf("kind %.20q is none; did you mean %s?", name, near)
	}
	return fmt.Errorf("kind %.20q is none of %s", name, strings.Join(kinds, ", "))
}

// keysOf refuses keys that a kind does not take, and asks for those that it needs.
func keysOf(given map[string]string, kind string, takes, needed []string) error {
	takes = append([]string{"at", "kind"}, takes...)
	var errs []error
	for _, key := range sortedKeys(given) {
		if slices.Contains(takes, key) {
			continue
		}
		hint := "it takes " + strings.Join(takes, ", ")
		if near := settings.Nearest(key, takes); near != "" {
			hint = "did you mean " + near + "?"
		}
		errs = append(errs, fmt.Errorf("%.30q is no key of kind %s; %s", key, kind, hint))
	}
	for _, key := range needed {
		if given[key] == "" {
			errs = append(errs, fmt.Errorf("kind %s needs %s", kind, key))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// take reads the values.
func (f *Fault) take(given map[string]string) error {
	*f = Fault{Kind: FaultKind(given["kind"]), Broker: All, Partition: All, To: All}
	for _, d := range []struct {
		key  string
		into *time.Duration
	}{{"at", &f.At}, {"for", &f.For}, {"delay", &f.Delay}, {"jitter", &f.Jitter}} {
		text, is := given[d.key]
		if !is {
			continue
		}
		var err error
		if *d.into, err = settings.ParseDuration(text); err != nil {
			return fmt.Errorf("%s: %w", d.key, err)
		}
	}
	for _, n := range []struct {
		key  string
		into *int32
	}{{"broker", &f.Broker}, {"partition", &f.Partition}, {"to", &f.To}} {
		text, is := given[n.key]
		if !is || text == "all" && n.key != "to" {
			continue
		}
		if n.key == "broker" && text == first && f.Proxied() {
			*n.into = First
			continue
		}
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil || v < 0 {
			return fmt.Errorf("%s %.20q: a number of 0 or more is needed%s", n.key, text, map[bool]string{true: ", or all"}[n.key != "to"])
		}
		*n.into = int32(v)
	}
	var err error
	if text, is := given["bytesPerSecond"]; is {
		if f.BytesPerSecond, err = settings.ParseBytes(text); err != nil {
			return fmt.Errorf("bytesPerSecond: %w", err)
		}
	}
	if f.Kind == FaultError {
		if f.Request, err = named("request", given["request"], FaultRequests()); err == nil {
			f.Code, err = named("code", given["code"], FaultCodes())
		}
	}
	return err
}

// named finds a name whatever its case.
func named(key, text string, known []string) (string, error) {
	for _, name := range known {
		if strings.EqualFold(name, text) {
			return name, nil
		}
	}
	if near := settings.Nearest(text, known); near != "" {
		return "", fmt.Errorf("%s %.40q is none; did you mean %s?", key, text, near)
	}
	return "", fmt.Errorf("%s %.40q is none of %s", key, text, strings.Join(known, ", "))
}

// Faults says what of a definition's faults there is to provide for.
type Faults []Fault

// Proxied says whether any is done to connections.
func (fs Faults) Proxied() bool { return slices.ContainsFunc(fs, Fault.Proxied) }

// Has says whether any is of the kind.
func (fs Faults) Has(kind FaultKind) bool {
	return slices.ContainsFunc(fs, func(f Fault) bool { return f.Kind == kind })
}
