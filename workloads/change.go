package workloads

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// ChangeKind is what happens to consumers while the load is on.
type ChangeKind string

// The kinds of changes. Remove and Kill take those that have been there longest.
const (
	Add    ChangeKind = "add"    // new members join
	Remove ChangeKind = "remove" // members leave, and say so
	Kill   ChangeKind = "kill"   // members are gone, their connections cut, without a word
)

var changeKinds = []ChangeKind{Add, Remove, Kill}

// Change is something that happens to the members of every group of consumers. In a file it is
// {at: 5s, add: 2}, in one word "5s add 2", as on the command line.
type Change struct {
	At    time.Duration // since the start of the measured phase
	Kind  ChangeKind
	Count int
}

// MarshalText is the change in words: "5s add 2".
func (c Change) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String is the change in words.
func (c Change) String() string {
	return settings.FormatDuration(c.At) + " " + string(c.Kind) + " " + strconv.Itoa(c.Count)
}

const changeForm = `write it like {at: 5s, add: 2} or "5s add 2", with add, remove or kill`

// UnmarshalText reads "5s add 2".
func (c *Change) UnmarshalText(text []byte) error {
	parts := strings.Fields(string(text))
	if len(parts) != 3 {
		return fmt.Errorf("%.60q is no change of consumers; %s", text, changeForm)
	}
	return c.set(parts[0], parts[1], parts[2])
}

// UnmarshalEntries reads {at: 5s, add: 2}.
func (c *Change) UnmarshalEntries(entries []settings.Assignment) error {
	var at, kind, count string
	for _, e := range entries {
		switch {
		case e.Value.IsList() || e.Value.IsMap() || e.Value.IsNull():
			return fmt.Errorf("%s needs a value; %s", e.Key, changeForm)
		case e.Key == "at":
			at = e.Value.Text()
		case kind != "":
			return fmt.Errorf("%s and %s are two changes; give each its own entry", kind, e.Key)
		default:
			kind, count = e.Key, e.Value.Text()
		}
	}
	if at == "" || kind == "" {
		return fmt.Errorf("a change needs a time and what happens; %s", changeForm)
	}
	return c.set(at, kind, count)
}

func (c *Change) set(at, kind, count string) error {
	when, err := settings.ParseDuration(at)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return fmt.Errorf("%s %.20q: a number of consumers of 1 or more is needed", kind, count)
	}
	for _, known := range changeKinds {
		if string(known) == kind {
			*c = Change{At: when, Kind: known, Count: n}
			return nil
		}
	}
	return fmt.Errorf("%.20q is none of add, remove and kill", kind)
}
