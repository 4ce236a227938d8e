package plan

import (
	"fmt"
	"strings"

	"github.com/kbench/kbench/client/settings"
	"github.com/kbench/kbench/workloads"
)

// Load says in a line who produces and who consumes at a point:
// "2 producers (callback) · 3 groups of 2 members (batch)".
func (p *Point) Load() string {
	d := &p.Definition
	var parts []string
	if n := d.Producers.Count; n > 0 {
		parts = append(parts, counted(n, "producer")+" ("+d.Producers.Form+")")
	}
	if d.Consumers.Count > 0 {
		parts = append(parts, consumersText(d.Consumers))
	}
	return strings.Join(parts, " · ")
}

func consumersText(c workloads.Consumers) string {
	word := map[bool]string{true: "member", false: "consumer"}[c.Mode == "group"]
	text := counted(c.Count, word)
	switch {
	case c.Groups > 1:
		text = counted(c.Groups, "group") + " of " + text
	case c.Mode == "group":
		text = "a group of " + text
	}
	text += " (" + c.Form + ")"
	if c.StartAfter > 0 {
		text += " from " + settings.FormatDuration(c.StartAfter) + " on"
	}
	for i, change := range c.Changes {
		const most = 4
		if i == most {
			return text + fmt.Sprintf(", … and %d changes more", len(c.Changes)-most)
		}
		text += ", " + change.String()
	}
	return text
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// loads are the lines about who produces and consumes: one, or one for each that differs with the
// points it is of.
func (p *Plan) loads() []string {
	var order []string
	of := map[string][]string{}
	for i := range p.Points {
		if text := p.Points[i].Load(); text != "" && p.Points[i].Skipped == "" {
			if of[text] == nil {
				order = append(order, text)
			}
			of[text] = append(of[text], p.Points[i].ID)
		}
	}
	if len(order) < 2 {
		return order
	}
	for i, text := range order {
		ids := of[text]
		const most = 8
		if len(ids) > most {
			ids = append(ids[:most:most], fmt.Sprintf("and %d more", len(ids)-most))
		}
		order[i] = text + ": " + strings.Join(ids, " ")
	}
	return order
}
