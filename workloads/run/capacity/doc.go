// Package capacity looks for the highest rate that holds an objective.
//
// Search is the search itself: a state machine that is told what came of one probe and says which
// rate is asked for next. It doubles the rate until a probe does not hold, bisects on a logarithmic
// scale until the lowest rate that did not hold is within 2 % of the highest that did, and then asks
// for a hold run, longer than a probe, whose figures are the ones reported: never an average over
// the search, whose probes were at different rates. It has no clock and runs nothing.
//
// What real systems do to a search, and what becomes of it:
//
//   - The first probe does not hold: it goes down, at once to what was achieved where that is far
//     below, and then bisects. It never goes down for good: when nothing holds further down though
//     the first rate was reached, it looks further up as well, and else it says that nothing held.
//   - A probe is disturbed: its rate was reached, but its run is invalid (the generator paused, CPU
//     was stolen). It says nothing about the rate, and is made once more.
//   - The generator gives out, or its machine, before the cluster does: again disturbed, or the rate was
//     not reached and the verdict names the generator. The search goes on below, since a lower rate may be
//     the cluster's limit; if none is, the capacity is the rate found or more, and the outcome says whose
//     limit that was.
//   - A probe fails by chance: when every probe since has held and they have come up to it, it is
//     made once more before it is believed.
//   - A probe holds by chance: the hold run does not, and is made again a little below, then
//     further below each time; the bounds of the figure say how far.
//
// Judge says what came of a run.
package capacity
