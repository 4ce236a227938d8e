package fetch

import "time"

// Missing times how long brokers have been saying, without a break, that a partition is not there.
// They may be behind in that: a topic that was just made, or a broker that has just come back, is
// not known everywhere at once. The zero value has heard nothing of the kind.
type Missing struct{ since time.Time }

// Heard takes in one failure, which says that the partition is not there or anything else, and
// returns for how long it has been missing. What says anything else ends that, an answer that did
// not come included: a cluster that could not be asked has to say it anew.
func (m *Missing) Heard(now time.Time, notThere bool) time.Duration {
	switch {
	case !notThere:
		*m = Missing{}
		return 0
	case m.since.IsZero():
		m.since = now
	}
	return now.Sub(m.since)
}
