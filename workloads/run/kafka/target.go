// Package kafka is the Target that drives a Kafka cluster through package client.
package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/workloads"
	"github.com/kbench/kbench/workloads/run"
)

// Options say what to drive.
type Options struct {
	// Bootstrap are the addresses of the cluster.
	Bootstrap []string
	// Config are the client settings in effect; it is copied.
	Config client.Config
	// Definition is the workload at the point to run.
	Definition workloads.Definition
	// Clock is the engine's.
	Clock run.Clock
}

// Target drives one run on a cluster. It is used by one engine, once.
type Target struct {
	o    Options
	base time.Time // the engine's time 0

	admin    *client.Client // also the readers', and the producers' when they share
	topics   []string
	made     []string         // topics to delete at the end
	numbers  map[string]int32 // of the topics
	suffix   string           // of the names of what is made
	groups   []*group         // in mode group
	starts   map[place]int64  // where consumers begin
	parts    map[string]int32 // partitions of each topic
	before   []client.TopicDescription
	sharedMu sync.Mutex
	shared   *client.Client // the producers' one client with ShareConnection

	counters     counters
	board        board
	topicWatcher topicWatcher
	// stopPolling ends the goroutine that asks for the ends of partitions; nil without one.
	stopPolling func()
}

// place is one partition of the run.
type place struct {
	topic     string
	partition int32
}

// New makes a target; nothing is contacted before Prepare.
func New(o Options) *Target {
	t := &Target{o: o, starts: map[place]int64{}, parts: map[string]int32{}, numbers: map[string]int32{}}
	t.base = time.Now().Add(-time.Duration(o.Clock.Now()))
	t.counters.kinds = map[string]int64{}
	return t
}

// since is an instant on the engine's clock, 0 for none.
func (t *Target) since(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return int64(at.Sub(t.base))
}

// Prepare contacts the cluster and makes the topics, or looks at the one that is named.
func (t *Target) Prepare(ctx context.Context) error {
	c, err := client.NewClientContext(ctx, t.o.Bootstrap, &t.o.Config)
	if err != nil {
		return fmt.Errorf("%w; is a broker listening there? (without --brokers kbench starts its own)", err)
	}
	t.admin = c
	t.counters.join(c)
	suffix := make([]byte, 4)
	if _, err := rand.Read(suffix); err != nil {
		return err
	}
	t.suffix = hex.EncodeToString(suffix)
	if err := t.prepareTopics(ctx); err != nil {
		return err
	}
	for i, name := range t.topics {
		t.numbers[name] = int32(i)
		d, err := c.DescribeTopic(ctx, name)
		if err != nil {
			return err
		}
		t.parts[name] = int32(len(d.Leaders))
		t.before = append(t.before, d)
	}
	return t.findStarts(ctx)
}

func (t *Target) prepareTopics(ctx context.Context) error {
	d := &t.o.Definition.Topics
	switch {
	case d.Name != "":
		t.topics = []string{d.Name}
		return nil
	case d.Include != "":
		return t.includeTopics(ctx)
	}
	rf := d.ReplicationFactor
	if rf == 0 {
		rf = min(3, max(1, len(t.admin.Brokers())))
	}
	var specs []client.TopicSpec
	for i := range max(1, d.Count) {
		name := fmt.Sprintf("kbench-%s-%s-%d", safe(t.o.Definition.Name), t.suffix, i)
		t.topics = append(t.topics, name)
		specs = append(specs, client.TopicSpec{
			Name: name, Partitions: int32(d.Partitions), ReplicationFactor: int16(rf), Config: d.Config,
		})
	}
	if !d.Keep {
		t.made = t.topics // also what a failure half-way leaves
	}
	return t.admin.CreateTopics(ctx, specs...)
}

// includeTopics finds the topics that are meant by a pattern.
func (t *Target) includeTopics(ctx context.Context) error {
	d := &t.o.Definition.Topics
	pattern, err := d.Pattern()
	if err != nil {
		return fmt.Errorf("topics.include: %w", err)
	}
	names, err := t.admin.Topics(ctx)
	if err != nil {
		return fmt.Errorf("finding the topics of topics.include: %w", err)
	}
	for _, name := range names {
		if pattern.MatchString(name) && !strings.HasPrefix(name, "__") {
			t.topics = append(t.topics, name)
		}
	}
	if len(t.topics) == 0 {
		return fmt.Errorf("none of the cluster's %d topics matches topics.include=%q", len(names), d.Include)
	}
	return nil
}

// safe is what of a name may stand in a topic's name.
func safe(name string) string {
	out := []byte(name)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			out[i] = '-'
		}
	}
	return string(out[:min(len(out), 100)])
}

// findStarts notes where the consumers begin, before anything is produced, so that nothing of
// the run is missed and nothing from before it is read.
func (t *Target) findStarts(ctx context.Context) error {
	if t.o.Definition.Consumers.Count == 0 {
		return nil
	}
	when := client.OffsetNewest
	if t.o.Definition.Consumers.From == "earliest" {
		when = client.OffsetOldest
	}
	answers, err := t.list(ctx, when, client.ReadUncommitted)
	if err != nil {
		return fmt.Errorf("finding where consumers start: %w", err)
	}
	for _, a := range answers {
		if a.Err != nil {
			return fmt.Errorf("finding where consumers start: %w", a.Err)
		}
		t.starts[place{a.Topic, a.Partition}] = a.Offset
	}
	t.board.lay(t.topics, t.parts, max(1, t.o.Definition.Consumers.Groups), t.starts)
	if err := t.watchEnds(ctx); err != nil {
		return fmt.Errorf("finding the ends of the partitions: %w", err)
	}
	return t.prepareGroups(ctx)
}

// Topics are the names of the run's topics, once it is prepared.
func (t *Target) Topics() []string { return slices.Clone(t.topics) }

// Finish deletes the topics that were made and closes the target's clients.
func (t *Target) Finish(ctx context.Context) error {
	if t.admin == nil {
		return nil
	}
	var errs []error
	if t.stopPolling != nil {
		t.stopPolling()
	}
	t.stopWatch()
	errs = append(errs, t.deleteGroups(ctx))
	if len(t.made) > 0 {
		if err := t.admin.DeleteTopics(ctx, t.made...); err != nil {
			errs = append(errs, fmt.Errorf("%w; delete what is left of %v by hand", err, t.made))
		}
	}
	if t.shared != nil {
		errs = append(errs, t.shared.Close())
	}
	return errors.Join(append(errs, t.admin.Close())...)
}
