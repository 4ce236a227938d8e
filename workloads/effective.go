package workloads

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kbench/kbench/client/settings"
)

// Effective is the definition after defaults and overrides, ready for JSON: every key of the
// workload with its value, "client" with the client settings that differ from the client's
// defaults, and "sweep" with the axes. Secrets are left out. It says the same for workloads
// that mean the same: "-1" and "all", 64KiB and 65536.
func (d *Definition) Effective() map[string]any {
	out := settings.Effective(d)
	if len(d.Phases.Named) > 0 {
		out["phases.duration"] = settings.FormatDuration(d.Phases.Length())
	}
	out["client"] = d.clientInEffect()
	sweep := make([]any, 0, len(d.Sweep))
	for _, axis := range d.Sweep {
		values := make([]any, 0, len(axis.Values))
		for _, v := range axis.Values {
			values = append(values, d.canonical(axis.Key, v))
		}
		sweep = append(sweep, map[string]any{"key": axis.Key, "values": values})
	}
	out["sweep"] = sweep
	if len(d.Points) > 0 {
		points := make([]any, 0, len(d.Points))
		for _, chosen := range d.Points {
			point := map[string]any{}
			for _, a := range chosen {
				point[a.Key] = d.canonical(a.Key, a.Value)
			}
			points = append(points, point)
		}
		out["points"] = points
	}
	return out
}

// Hash identifies the work: SHA-256 of what Effective says, without what does not change the
// load: name, description, seed, repeats, thresholds and limits of validity. Results with
// equal hashes can be compared.
func (d *Definition) Hash() string {
	return hashOf(d.content(), []string{"name", "description", "seed", "repeat", "thresholds", "validity"}, []string{"topics.keep"})
}

// content is Effective with what files hold in place of where they stand.
func (d *Definition) content() map[string]any {
	effective := d.Effective()
	if len(d.Times) > 0 {
		effective["producers.schedule.file"] = digest(d.Times)
	}
	p := d.Payload
	for key, path := range map[string]string{"payload.file": p.File, "payload.keys.file": p.Keys.File, "payload.sizes.file": p.Sizes.File} {
		if file := d.files[path]; file != nil {
			sum := sha256.Sum256(file.data)
			effective[key] = hex.EncodeToString(sum[:])
		}
	}
	return effective
}

// hashOf is the hash of what is in effect, without the sections and the keys given.
func hashOf(effective map[string]any, sections, keys []string) string {
	for key := range effective {
		root, _, _ := strings.Cut(key, ".")
		if slices.Contains(sections, root) || slices.Contains(keys, key) {
			delete(effective, key)
		}
	}
	text, err := json.Marshal(effective) // map keys are written in order
	if err != nil {
		// Only strings, numbers, bools, lists and maps are in it, and numbers are finite.
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// digest identifies a list of times.
func digest(times []int64) string {
	h := sha256.New()
	var ns [8]byte
	for _, at := range times {
		binary.BigEndian.PutUint64(ns[:], uint64(at))
		h.Write(ns[:]) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// clientInEffect is what the client assignments come to, a later one over an earlier.
func (d *Definition) clientInEffect() map[string]any {
	out := map[string]any{}
	for _, a := range d.Client {
		for key := range out {
			if strings.HasPrefix(key, a.Key+".") {
				delete(out, key) // a section replaces what was set in it
			}
		}
		leaves, _ := settings.Leaves(d.clientFields, a)
		if len(d.clientFields) == 0 {
			leaves = []settings.Assignment{a}
		}
		for _, leaf := range leaves {
			d.putClient(out, leaf)
		}
	}
	return out
}

func (d *Definition) putClient(out map[string]any, leaf settings.Assignment) {
	f, known := fieldOf(d.clientFields, leaf.Key)
	if known && f.Secret {
		return
	}
	value := d.canonical(leaf.Key, leaf.Value)
	if known && settings.Of(value).String() == f.Default {
		delete(out, leaf.Key)
		return
	}
	out[leaf.Key] = value
}

// canonical is what a value means to a leaf; of a section, a map of its leaves.
func (d *Definition) canonical(key string, v settings.Value) any {
	fields := ownFields
	if IsClientKey(key) {
		fields = d.clientFields
	}
	if f, known := fieldOf(fields, key); known {
		if value, p := f.Canonical(v); p == nil && !f.Secret {
			return value
		}
		return nil
	}
	leaves, problems := settings.Leaves(fields, settings.Assignment{Key: key, Value: v})
	if len(problems) > 0 {
		return v.Any() // only without a schema to ask
	}
	out := map[string]any{}
	for _, leaf := range leaves {
		out[strings.TrimPrefix(leaf.Key, key+".")] = d.canonical(leaf.Key, leaf.Value)
	}
	return out
}

func fieldOf(fields []settings.Field, key string) (settings.Field, bool) {
	for _, f := range fields {
		if f.Key == key {
			return f, true
		}
	}
	return settings.Field{}, false
}
