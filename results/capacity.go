package results

// Capacity is one search for the highest rate that holds an objective, at one point.
type Capacity struct {
	Point      string   `json:"point"`  // its ID
	Repeat     int      `json:"repeat"` // 0-based
	Objectives []string `json:"objectives"`
	// Outcome is one of the Capacity… constants.
	Outcome string `json:"outcome"`
	// MessagesPerSecond is the rate achieved in the hold run, and AskedPerSecond the one asked for in
	// it; 0 unless the outcome says that it held. UpperPerSecond is the lowest rate above that was
	// seen not to hold: the capacity lies between the two. 0 when none was seen.
	MessagesPerSecond float64 `json:"messagesPerSecond"`
	AskedPerSecond    float64 `json:"askedPerSecond"`
	UpperPerSecond    float64 `json:"upperPerSecond,omitempty"`
	// Generator is what the generator or its machine had come to in every run at the rate that the outcome
	// rests on: at UpperPerSecond for "generator"; with "nothing" and "unconfirmed" in all runs that did not
	// hold. Empty: it was the cluster that did not hold.
	Generator string `json:"generator,omitempty"`
	// CeilingPerSecond is the most that was asked for; 0: there was no such bound.
	CeilingPerSecond float64 `json:"ceilingPerSecond,omitempty"`
	// Probes are all runs of the search in order, those to hold the result at its end.
	Probes []Probe `json:"probes"`
}

// Outcomes of a search.
const (
	CapacityFound       = "found"       // a rate held, and a higher one did not
	CapacityCeiling     = "ceiling"     // the generator's ceiling held: the capacity is that or more
	CapacityGenerator   = "generator"   // a rate held, and above it the generator or its machine gave out: the capacity is that or more
	CapacityProbes      = "probes"      // the highest rate probed held when the probes were used up
	CapacityNothing     = "nothing"     // no rate that was probed held
	CapacityUnconfirmed = "unconfirmed" // probes held, but no hold run: there is no figure
	CapacityUnfinished  = "unfinished"  // the search was broken off
)

// Held says whether the search has a figure.
func (c *Capacity) Held() bool { return c.Outcome == CapacityFound || c.AtLeast() }

// AtLeast says whether that figure is a lower bound: nothing was seen of the cluster not to hold.
func (c *Capacity) AtLeast() bool {
	return c.Outcome == CapacityCeiling || c.Outcome == CapacityGenerator || c.Outcome == CapacityProbes
}

// Stages of a probe.
const (
	StageProbe = "probe"
	StageHold  = "hold"
)

// Probe is one run of a search.
type Probe struct {
	Stage          string  `json:"stage"`
	Number         int     `json:"number"` // from 1, in its stage
	AskedPerSecond float64 `json:"askedPerSecond"`
	Held           bool    `json:"held"`
	// Reasons are why it did not hold.
	Reasons []string `json:"reasons"`
	// Run has the figures, and names the probe's own files.
	Run Run `json:"run"`
}
