package run

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kbench/kbench/results"
	"github.com/kbench/kbench/results/hist"
	"github.com/kbench/kbench/workloads"
)

// split is what one recorder knows of the messages of the measured phase by producer and by
// partition. It is guarded by the recorder's lock.
type split struct {
	among      int64            // producers
	producers  map[int64]*tally // nil when nobody asked
	partitions map[place]*tally // nil when nobody asked
	last       place            // runs are of one partition, mostly
	lastOf     *tally
}

// tally is one producer's, or one partition's.
type tally struct {
	acked, failed, unknown int64
	latency                hist.Compact // response, or service in a closed loop, of what was acked
}

// newSplit is nil when nothing is asked for.
func newSplit(d *workloads.Definition) *split {
	s := &split{among: int64(d.Producers.Count)}
	if d.Record.PerProducer {
		s.producers = map[int64]*tally{}
	}
	if d.Record.PerPartition {
		s.partitions = map[place]*tally{}
	}
	if s.producers == nil && s.partitions == nil {
		return nil
	}
	return s
}

// record takes down a run of messages of one producer.
func (s *split) record(batch []*Message, acked int64, open bool) {
	if s.producers != nil {
		p := partOf(s.producers, batch[0].Number%s.among)
		for _, m := range batch {
			p.add(m, acked, open)
		}
	}
	if s.partitions == nil {
		return
	}
	for _, m := range batch {
		if m.Partition < 0 { // it failed before it had one
			continue
		}
		if here := (place{m.Topic, m.Partition}); s.lastOf == nil || here != s.last {
			s.last, s.lastOf = here, partOf(s.partitions, here)
		}
		s.lastOf.add(m, acked, open)
	}
}

func (p *tally) add(m *Message, acked int64, open bool) {
	switch {
	case m.Err == nil && open:
		p.acked++
		p.latency.Record(acked - m.Due)
	case m.Err == nil:
		p.acked++
		p.latency.Record(acked - m.Accepted)
	case m.Unknown:
		p.unknown++
	default:
		p.failed++
	}
}

// partOf gives the part of a key, made on first use.
func partOf[K comparable](parts map[K]*tally, key K) *tally {
	p := parts[key]
	if p == nil {
		p = &tally{}
		parts[key] = p
	}
	return p
}

// merged adds up the parts of all recorders.
func merged[K comparable](e *engine, of func(*split) map[K]*tally) map[K]*tally {
	all := map[K]*tally{}
	for _, r := range e.recorders {
		if r.split == nil {
			continue
		}
		for key, p := range of(r.split) {
			sum := partOf(all, key)
			sum.acked += p.acked
			sum.failed += p.failed
			sum.unknown += p.unknown
			sum.latency.Merge(&p.latency)
		}
	}
	return all
}

// Splits are the figures of a run by producer and by partition; a list is empty unless the workload
// asks for it.
type Splits struct{ Producers, Partitions []results.Part }

// summaries are what result.json has of them.
func (s Splits) summaries() []results.Parts {
	var list []results.Parts
	for _, by := range []struct {
		name  string
		parts []results.Part
	}{{results.ByProducer, s.Producers}, {results.ByPartition, s.Partitions}} {
		if len(by.parts) > 0 {
			list = append(list, results.SumUp(by.name, by.parts))
		}
	}
	return list
}

// splits are the parts in order; a producer or partition that had no message has an entry as well.
func (e *engine) splits() (out Splits) {
	if e.def.Record.PerProducer {
		all := merged(e, func(s *split) map[int64]*tally { return s.producers })
		for id := range e.course.producers {
			partOf(all, id)
		}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			p := results.Part{Producer: int(id)}
			all[id].into(&p)
			out.Producers = append(out.Producers, p)
		}
	}
	if !e.def.Record.PerPartition {
		return out
	}
	all := merged(e, func(s *split) map[place]*tally { return s.partitions })
	for t, topic := range e.report.Topics {
		for n := range topic.Partitions {
			partOf(all, place{int32(t), n})
		}
	}
	for _, where := range slices.SortedFunc(maps.Keys(all), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	}) {
		p := results.Part{Partition: where.partition}
		if int(where.topic) < len(e.report.Topics) {
			p.Topic = e.report.Topics[where.topic].Name
		}
		all[where].into(&p)
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

func (p *tally) into(out *results.Part) {
	h := &p.latency
	out.Acked, out.Failed, out.Unknown = p.acked, p.failed, p.unknown
	out.Latency = results.PartSeries{MinNs: h.Min(), MeanNs: int64(h.Mean() + 0.5),
		P50Ns: h.Quantile(0.5), P99Ns: h.Quantile(0.99), P999Ns: h.Quantile(0.999), MaxNs: h.Max()}
}
