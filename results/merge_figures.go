package results

import (
	"math"
	"slices"
	"strings"

	"github.com/kbench/kbench/results/hist"
)

// sumUpRuns is the merged run but for its verdict; it lasted from the first shard's start to end.
func sumUpRuns(parts []runPart, windows []Window, end int64) *Run {
	first := parts[0]
	run := &Run{
		Repeat: first.Repeat, Order: first.Order, ElapsedNs: end, Loop: first.Loop, AckMeaning: first.AckMeaning,
		StartedAt: first.StartedAt, Series: map[string]Series{}, Errors: map[string]int64{},
	}
	for _, p := range parts {
		if p.offset == 0 {
			run.StartedAt = p.StartedAt
		}
		run.Incomplete = run.Incomplete || p.Incomplete
		run.Counts.add(p.Counts)
		run.Rates.add(p.Rates, float64(p.ElapsedNs)/float64(max(end, 1)))
		for kind, n := range p.Errors {
			run.Errors[kind] += n
		}
		for _, t := range p.Topics {
			if !slices.ContainsFunc(run.Topics, func(o Topic) bool { return o.Name == t.Name }) {
				run.Topics = append(run.Topics, t)
			}
		}
		run.addEvents(p)
		for _, t := range p.Thresholds {
			if !slices.ContainsFunc(run.Thresholds, func(o Threshold) bool { return o.Expression == t.Expression }) {
				run.Thresholds = append(run.Thresholds, t)
			}
		}
	}
	run.mergeSeries(parts, windows)
	run.Generator = generatorOf(parts)
	run.Batches = batchesOf(parts)
	run.Consumption = consumptionOf(parts, windows, end)
	run.Phases = phasesOf(parts)
	run.Transactions = transactionsOf(parts)
	run.LittlesLaw, run.Steady = lawOf(parts), steadyOf(parts)
	return run
}

func (c *Counts) add(o Counts) {
	c.Attempted += o.Attempted
	c.Acked += o.Acked
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Received += o.Received
	c.Lost += o.Lost
	c.Duplicated += o.Duplicated
	c.Reordered += o.Reordered
	c.Corrupted += o.Corrupted
	c.Unstamped += o.Unstamped
	c.NotReceived += o.NotReceived
	c.NegativeE2E += o.NegativeE2E
	c.Unchecked = c.Unchecked || o.Unchecked
}

// add adds rates that were reached for a share of the whole time.
func (r *Rates) add(o Rates, share float64) {
	r.MessagesPerSecond += o.MessagesPerSecond * share
	r.BytesPerSecond += o.BytesPerSecond * share
	r.ReceivedPerSecond += o.ReceivedPerSecond * share
	r.TargetMessagesPerSecond += o.TargetMessagesPerSecond
}

// addEvents adds a shard's marks and faults, at the merged run's time.
func (r *Run) addEvents(p runPart) {
	for _, e := range p.Events {
		e.AtNs += p.offset
		e.Text = p.shard.name + ": " + e.Text
		r.Events = append(r.Events, e)
	}
	for _, f := range p.Faults {
		f.AtNs += p.offset
		f.Text = p.shard.name + ": " + f.Text
		r.Faults = append(r.Faults, f)
	}
	slices.SortStableFunc(r.Events, func(a, b Event) int { return int(min(max(a.AtNs-b.AtNs, -1), 1)) })
}

// mergeSeries sums the merged windows up. What a log does not tell exactly comes from the shards'
// own figures.
func (r *Run) mergeSeries(parts []runPart, windows []Window) {
	whole := map[string]*hist.Histogram{}
	for i := range windows {
		for name, h := range windows[i].Series {
			if whole[name] == nil {
				whole[name] = hist.New()
			}
			whole[name].Merge(h)
		}
	}
	for name, h := range whole {
		r.Series[name] = exactly(Summarise(h), seriesNamed(parts, name))
	}
}

func seriesNamed(parts []runPart, name string) []Series {
	var list []Series
	for _, p := range parts {
		if s, is := p.Series[name]; is && s.Count > 0 {
			list = append(list, s)
		}
	}
	return list
}

// exactly takes ends, mean and clamped values of a merged series from what it was merged from.
func exactly(merged Series, from []Series) Series {
	if len(from) == 0 {
		return merged
	}
	merged.MinNs, merged.MaxNs, merged.Clamped = math.MaxInt64, math.MinInt64, 0
	sum, n := 0.0, int64(0)
	for _, s := range from {
		merged.MinNs, merged.MaxNs = min(merged.MinNs, s.MinNs), max(merged.MaxNs, s.MaxNs)
		merged.Clamped += s.Clamped
		sum, n = sum+float64(s.MeanNs)*float64(s.Count), n+s.Count
	}
	merged.MeanNs = int64(math.Round(sum / float64(n)))
	return merged
}

// generatorOf adds up what the shards' generators used; the worst of them stands where adding means nothing.
func generatorOf(parts []runPart) Generator {
	var g Generator
	acked, known := 0.0, true
	var pacers []string
	for _, p := range parts {
		o := p.Generator
		g.CPUNsPerMessage += o.CPUNsPerMessage * float64(p.Counts.Acked)
		acked += float64(p.Counts.Acked)
		g.CPUCores += o.CPUCores
		g.CPUAvailable += o.CPUAvailable
		g.MaxRSSBytes += o.MaxRSSBytes
		g.GCPauseMaxNs = max(g.GCPauseMaxNs, o.GCPauseMaxNs)
		g.GCPauseTotalNs += o.GCPauseTotalNs
		g.GCCycles += o.GCCycles
		g.StolenShare = max(g.StolenShare, o.StolenShare)
		g.PauseMaxNs = max(g.PauseMaxNs, o.PauseMaxNs)
		g.LatenessP99, g.LatenessMaxNs = max(g.LatenessP99, o.LatenessP99), max(g.LatenessMaxNs, o.LatenessMaxNs)
		g.BehindNs, g.BehindOwnNs = max(g.BehindNs, o.BehindNs), max(g.BehindOwnNs, o.BehindOwnNs)
		g.HostCPUShare = max(g.HostCPUShare, o.HostCPUShare)
		g.CeilingPerSecond += o.CeilingPerSecond
		known = known && o.CeilingPerSecond > 0
		g.AllocBytes += o.AllocBytes
		g.AllocObjects += o.AllocObjects
		if o.Pacer != "" && !slices.Contains(pacers, o.Pacer) {
			pacers = append(pacers, o.Pacer)
		}
	}
	g.CPUNsPerMessage /= max(acked, 1)
	g.Pacer = strings.Join(pacers, ", ")
	if !known {
		g.CeilingPerSecond = 0
	}
	return g
}

// transactionsOf adds up the shards' transactions.
func transactionsOf(parts []runPart) (sum *Transactions) {
	for _, p := range parts {
		o := p.Transactions
		if o == nil {
			continue
		}
		if sum == nil {
			sum = &Transactions{}
		}
		sum.Committed += o.Committed
		sum.Aborted += o.Aborted
		sum.Failed += o.Failed
		sum.Unknown += o.Unknown
		sum.CommittedMessages += o.CommittedMessages
		sum.AbortedMessages += o.AbortedMessages
		sum.UnknownMessages += o.UnknownMessages
		sum.ReadCommitted = sum.ReadCommitted || o.ReadCommitted
		sum.AbortedReceived += o.AbortedReceived
	}
	return sum
}

func batchesOf(parts []runPart) Batches {
	var b Batches
	sent, plain := 0.0, 0.0
	for _, p := range parts {
		o := p.Batches
		batches, requests := float64(o.Batches), float64(o.Requests)
		b.Requests, b.Batches, b.Retries, b.ThrottleNs = b.Requests+o.Requests, b.Batches+o.Batches, b.Retries+o.Retries, b.ThrottleNs+o.ThrottleNs
		b.MessagesPerBatch += o.MessagesPerBatch * batches
		b.MessagesPerRequest += o.MessagesPerRequest * requests
		b.BytesPerBatch += o.BytesPerBatch * batches
		sent, plain = sent+o.BytesPerBatch*batches, plain+o.BytesPerBatch*batches*o.CompressionRatio
	}
	b.MessagesPerBatch /= max(float64(b.Batches), 1)
	b.MessagesPerRequest /= max(float64(b.Requests), 1)
	b.BytesPerBatch /= max(float64(b.Batches), 1)
	if sent > 0 {
		b.CompressionRatio = plain / sent
	}
	return b
}

// consumptionOf adds up groups by their place. Lag is read off the merged windows; what each group's
// was stands with the shards.
func consumptionOf(parts []runPart, windows []Window, end int64) *Consumption {
	var out *Consumption
	growth, known := 0.0, true
	for _, p := range parts {
		c := p.Consumption
		if c == nil {
			continue
		}
		if out == nil {
			out = &Consumption{Groups: []Group{}}
		}
		for i, g := range c.Groups {
			if i == len(out.Groups) {
				out.Groups = append(out.Groups, Group{Name: g.Name})
			}
			out.Groups[i].add(g)
		}
		out.CatchUp = out.CatchUp.with(c.CatchUp, p.offset)
		if c.Lag == nil || c.Lag.GrowthPerSecond == nil {
			known = false
			continue
		}
		growth += *c.Lag.GrowthPerSecond
	}
	if out == nil {
		return nil
	}
	if out.Lag = lagOf(windows, end); out.Lag != nil && known {
		out.Lag.GrowthPerSecond = &growth
	}
	return out
}

// lagOf is the lag of all shards over the windows of the measured phase.
func lagOf(windows []Window, end int64) (lag *Lag) {
	for i := range windows {
		w := &windows[i]
		if w.Lag < 0 || w.StartNs < 0 || w.StartNs+w.LengthNs/2 >= end { // a window is where most of it lies
			continue
		}
		if lag == nil {
			lag = &Lag{}
		}
		if w.Lag > lag.MaxMessages {
			lag.MaxMessages, lag.MaxAtNs = w.Lag, w.StartNs+w.LengthNs
		}
		lag.FinalMessages = w.Lag
	}
	return lag
}

// with is how all shards caught up: when the last one had. Latencies before, during and after stand with
// the shards.
func (c *CatchUp) with(o *CatchUp, offset int64) *CatchUp {
	if o == nil {
		return c
	}
	if c == nil {
		return &CatchUp{BacklogMessages: o.BacklogMessages, BeganNs: o.BeganNs + offset, Reached: o.Reached, TookNs: o.TookNs,
			MessagesPerSecond: o.MessagesPerSecond, Series: o.Series}
	}
	end := max(c.BeganNs+c.TookNs, o.BeganNs+offset+o.TookNs)
	c.BeganNs = min(c.BeganNs, o.BeganNs+offset)
	c.TookNs = end - c.BeganNs
	c.MessagesPerSecond += o.MessagesPerSecond
	if c.Reached = c.Reached && o.Reached; !c.Reached {
		c.TookNs, c.MessagesPerSecond = 0, 0
	}
	if c.BacklogMessages < 0 || o.BacklogMessages < 0 {
		c.BacklogMessages = -1
		return c
	}
	c.BacklogMessages += o.BacklogMessages
	return c
}

func (g *Group) add(o Group) {
	g.Received += o.Received
	g.Lost += o.Lost
	g.Duplicated += o.Duplicated
	g.Reordered += o.Reordered
	g.Corrupted += o.Corrupted
	g.NotReceived += o.NotReceived
	g.Rebalances += o.Rebalances
	g.RebalanceMaxNs = max(g.RebalanceMaxNs, o.RebalanceMaxNs)
	g.Commits += o.Commits
	g.StaleCommits += o.StaleCommits
}

// phasesOf adds up the phases that all shards have, by name. Their latencies stand with the shards:
// logs are of the whole.
func phasesOf(parts []runPart) []Phase {
	var out []Phase
	for i, first := range parts[0].Phases {
		merged := Phase{Name: first.Name, Kind: first.Kind, StartNs: first.StartNs + parts[0].offset, Series: map[string]Series{}}
		for _, p := range parts {
			if i >= len(p.Phases) || p.Phases[i].Name != first.Name {
				return nil
			}
			merged.LengthNs = max(merged.LengthNs, p.Phases[i].LengthNs)
			merged.StartNs = min(merged.StartNs, p.Phases[i].StartNs+p.offset)
		}
		for _, p := range parts {
			o := p.Phases[i]
			merged.Counts.Attempted += o.Counts.Attempted
			merged.Counts.Acked += o.Counts.Acked
			merged.Counts.Failed += o.Counts.Failed
			merged.Counts.Unknown += o.Counts.Unknown
			merged.Counts.Received += o.Counts.Received
			merged.Rates.add(o.Rates, float64(o.LengthNs)/float64(max(merged.LengthNs, 1)))
		}
		out = append(out, merged)
	}
	return out
}

// lawOf adds up messages in flight; it holds where it holds for every shard.
func lawOf(parts []runPart) *LittlesLaw {
	law := &LittlesLaw{Holds: true}
	for _, p := range parts {
		if p.LittlesLaw == nil {
			return nil
		}
		law.InFlight += p.LittlesLaw.InFlight
		law.InFlightMost += p.LittlesLaw.InFlightMost
		law.RateTimesService += p.LittlesLaw.RateTimesService
		law.Holds = law.Holds && p.LittlesLaw.Holds
	}
	return law
}

// steadyOf is that of the shard that is the worst in this.
func steadyOf(parts []runPart) *Steady {
	var worst *Steady
	for _, p := range parts {
		s := p.Steady
		if s != nil && (worst == nil || worst.Found && !s.Found || worst.Found == s.Found && s.Drift > worst.Drift) {
			worst = s
		}
	}
	return worst
}
