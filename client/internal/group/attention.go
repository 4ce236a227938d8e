package group

import "time"

// Attention tells from what is seen of an application now and then whether it still asks for
// messages, so that nothing has to be noted message by message. Make one with NewAttention.
type Attention struct {
	limit time.Duration
	last  time.Time // when it was last seen to have asked
	asked int64     // as of then
}

// looks is how often an application is looked at while it may be away for limit: what it did since
// the last look counts as done now, so that it is away for a limit and a part of it at most.
const looks = 10

// NewAttention is that of an application that asked just now. It may be away for limit; 0: for ever.
func NewAttention(limit time.Duration, now time.Time) Attention {
	return Attention{limit: limit, last: now}
}

// Look takes in how many times the application has asked up to now, and whether it waits for an
// answer at this moment. It says whether it has been away for too long, and when to look again at
// the latest; zero: once it has asked.
func (a *Attention) Look(now time.Time, asked int64, waits bool) (away bool, again time.Time) {
	if a.limit <= 0 {
		return false, time.Time{}
	}
	if waits || asked != a.asked {
		a.asked, a.last = asked, now
	}
	end := a.last.Add(a.limit)
	if !now.Before(end) {
		return true, time.Time{}
	}
	if soon := now.Add(a.limit / looks); soon.Before(end) {
		return false, soon
	}
	return false, end
}
