package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/security"
	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// perfWorkload is the workload that flags of Kafka's tools mean, as a file has it: it stands in the
// result, and runs again by kbench run.
type perfWorkload struct {
	lines  []perfLine
	given  []settings.Assignment // by Kafka's names
	names  map[string]bool       // of those
	wanted map[string]string     // of one of our keys: what was given, for errors
}

type perfLine struct{ key, value string }

func newPerfWorkload(as []settings.Assignment, properties []security.Property) *perfWorkload {
	w := &perfWorkload{given: as, names: map[string]bool{}, wanted: map[string]string{}}
	for _, p := range properties {
		w.names[p.Name] = true
	}
	for _, a := range as {
		w.wanted[a.Key] = "a setting given by Kafka's name"
	}
	return w
}

// set sets one of our keys, over what it was; from is the flag that says so, for errors.
func (w *perfWorkload) set(key, value, from string) {
	w.lines = slices.DeleteFunc(w.lines, func(l perfLine) bool { return l.key == key })
	w.lines = append(w.lines, perfLine{key, value})
	if from != "" {
		w.wanted[key] = from
	}
}

// unset takes a key back.
func (w *perfWorkload) unset(key string) {
	w.lines = slices.DeleteFunc(w.lines, func(l perfLine) bool { return l.key == key })
}

var plainText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// text is a scalar as it stands in YAML: plain where that is safe, since quotes make a text of a number.
func text(s string) string {
	if plainText.MatchString(s) && s != "null" || strings.HasPrefix(s, "-") && plainText.MatchString(s[1:]) {
		return s
	}
	return strconv.Quote(s)
}

// take sets what was given by Kafka's names.
func (w *perfWorkload) take() {
	for _, a := range w.given {
		w.set(a.Key, text(a.Value.Text()), "")
	}
}

// value is what a key has so far.
func (w *perfWorkload) value(key string) string {
	for _, l := range w.lines {
		if l.key == key {
			return strings.Trim(l.value, `"`)
		}
	}
	return ""
}

// javaProducer gives the producer the defaults that Kafka 4.4's has, and what was given.
func (w *perfWorkload) javaProducer(linger time.Duration) {
	w.set("clientID", "perf-producer-client", "")
	w.set("metadata.allowAutoTopicCreation", "true", "")
	w.set("net.maxOpenRequests", "5", "")
	w.set("producer.requiredAcks", "all", "")
	w.set("producer.idempotent", "true", "")
	w.set("producer.partitioner", "murmur2", "")
	w.set("producer.buffer.bytes", "33554432", "")
	w.set("producer.flush.frequency", settings.FormatDuration(linger), "")
	w.set("producer.flush.bytes", "16384", "")
	w.take()
	w.idempotence()
	w.flushing()
}

// idempotence is the default unless other settings rule it out, as with Kafka's producer.
func (w *perfWorkload) idempotence() {
	acks, inFlight := w.value("producer.requiredAcks"), w.value("net.maxOpenRequests")
	n, err := strconv.Atoi(inFlight)
	if !w.names["enable.idempotence"] && (acks == "0" || acks == "1" || w.value("producer.retry.max") == "0" || err == nil && n > 5) {
		w.set("producer.idempotent", "false", "")
	}
}

// flushing brings linger.ms and batch.size together: without lingering nothing waits for a batch to fill.
func (w *perfWorkload) flushing() {
	if w.value("producer.flush.bytes") == "0" { // batch.size=0: each record by itself
		w.set("producer.flush.maxMessages", "1", "")
		w.set("producer.flush.messages", "1", "")
		w.unset("producer.flush.frequency")
	}
	if lingering, err := time.ParseDuration(w.value("producer.flush.frequency")); err == nil && lingering == 0 {
		w.unset("producer.flush.frequency")
		w.unset("producer.flush.bytes")
	}
}

// source is the workload as a file.
func (w *perfWorkload) source(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\n", name)
	for _, l := range w.lines {
		fmt.Fprintf(&b, "%s: %s\n", l.key, l.value)
	}
	return b.String()
}

// decode makes the definition. Problems are told in the words of the flags.
func (w *perfWorkload) decode(name string, o workloads.Overrides) (*workloads.Definition, error) {
	def, err := workloads.Decode(name, []byte(w.source(name)), client.Schema{}, o)
	var problems settings.Problems
	if !errors.As(err, &problems) {
		return def, err
	}
	problems = slices.Clone(problems)
	for i, p := range problems {
		if from := w.wanted[p.Key]; p.File == name && from != "" {
			problems[i].File, problems[i].Line, problems[i].Column = from, 0, 0
		}
	}
	return nil, problems.Err()
}
