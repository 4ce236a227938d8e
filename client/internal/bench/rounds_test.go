package bench

import (
	"context"
	"fmt"
	"io"
)

// outcome is what one figure gave.
type outcome struct {
	figure  figure
	lines   map[entrant][]line // by round; nil where the program failed
	failed  map[entrant]error  // the last failure
	skipped []entrant          // there is no program of theirs
	err     error              // why there is nothing at all
}

// order is who runs when in a round: each round begins with the next one, so that nobody always
// follows the same and nobody is always first.
func order(entrants []entrant, round int) []entrant {
	n := len(entrants)
	out := make([]entrant, n)
	for i := range out {
		out[i] = entrants[(i+round)%n]
	}
	return out
}

// compare makes one figure.
func (f figure) compare(ctx context.Context, p programs, rounds int, progress io.Writer) *outcome {
	o := &outcome{figure: f, lines: map[entrant][]line{}, failed: map[entrant]error{}}
	var present []entrant
	for _, e := range f.entrants {
		if p.of(e.Lib) == nil {
			o.skipped = append(o.skipped, e)
			continue
		}
		present = append(present, e)
		o.lines[e] = make([]line, rounds)
	}
	s, err := f.open(ctx)
	if err != nil {
		o.err = err
		return o
	}
	defer s.close()
	for round := range rounds {
		for _, e := range order(present, round) {
			set := f.settings
			set.Lib, set.Mode = e.Lib, e.Mode
			l, err := s.once(ctx, p.of(e.Lib), set)
			if err != nil {
				o.failed[e] = err
				fmt.Fprintf(progress, "%s round %d %s: %v\n", f.id, round+1, e, err)
				if ctx.Err() != nil {
					o.err = ctx.Err()
					return o
				}
				continue
			}
			o.lines[e][round] = l
			fmt.Fprintf(progress, "%s round %d %-20s %s\n", f.id, round+1, e, f.say(l))
		}
	}
	return o
}

// say is a run's figures in short.
func (f *figure) say(l line) string {
	text := ""
	for _, m := range f.metrics {
		text += fmt.Sprintf("%s %s  ", m.key, m.unit.format(l[m.key]))
	}
	if v, ok := l[columnRequests]; ok {
		text += fmt.Sprintf(columnRequests+" %.0f", v)
	}
	return text
}

// oursFailed are the failures that are this client's, or nobody's in particular.
func (o *outcome) oursFailed() (failures []error) {
	if o.err != nil {
		failures = append(failures, fmt.Errorf("%s: %w", o.figure.id, o.err))
	}
	for e, err := range o.failed {
		if e.Lib == "kbench" {
			failures = append(failures, fmt.Errorf("%s: %w", o.figure.id, err))
		}
	}
	return failures
}
