package main

import "github.com/kbench/kbench/workloads/plan"

// planForm is a plan for programs.
type planForm struct {
	Seed     uint64      `json:"seed"`
	Design   designForm  `json:"design"`
	Points   []pointForm `json:"points"`
	Order    []orderForm `json:"order"`
	Estimate estimForm   `json:"estimate"`
}

// designForm says which of all combinations the points are.
type designForm struct {
	Kind string `json:"kind"`         // matrix, oneFactor, sample, chosen
	Of   uint64 `json:"of,omitempty"` // combinations in all; not with chosen
	Base string `json:"base,omitempty"`
}

type pointForm struct {
	ID       string         `json:"id"`
	Label    string         `json:"label"`
	Settings map[string]any `json:"settings"`
	Load     string         `json:"load"` // who produces and who consumes, for people
	Skipped  string         `json:"skipped,omitempty"`
}

type orderForm struct {
	Point  string `json:"point"`
	Repeat int    `json:"repeat"`
}

type estimForm struct {
	Executions int   `json:"executions"`
	Messages   int64 `json:"messages"`
	Bytes      int64 `json:"bytes"`
	ClosedLoop int   `json:"closedLoop"` // executions whose messages cannot be known beforehand
	TimeNs     int64 `json:"timeNs"`
}

func planJSON(p *plan.Plan) planForm {
	f := planForm{Seed: p.Seed, Design: designForm(p.Design), Points: []pointForm{}, Order: []orderForm{}, Estimate: estimForm{
		Executions: p.Estimate.Executions, Messages: p.Estimate.Messages, Bytes: p.Estimate.Bytes,
		ClosedLoop: p.Estimate.ClosedLoop, TimeNs: int64(p.Estimate.Time),
	}}
	for i := range p.Points {
		q := &p.Points[i]
		f.Points = append(f.Points, pointForm{ID: q.ID, Label: q.Label, Settings: q.Settings, Load: q.Load(), Skipped: q.Skipped})
	}
	for _, e := range p.Order {
		f.Order = append(f.Order, orderForm{Point: p.Points[e.Point].ID, Repeat: e.Repeat})
	}
	return f
}
