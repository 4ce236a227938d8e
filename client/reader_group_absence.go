package client

import (
	"context"
	"time"
)

// absence is how far a member is in leaving its group because the application does not ask for
// messages any more (consumer.group.maxPollInterval).
type absence int8

const (
	present  absence = iota
	parting          // the last commit is under way
	departed         // the member is suspended
)

// attend suspends the member when the application has not asked for messages for too long, and lets
// it join again when it asks. It returns when to look at the application again. Called by the loop.
func (m *membership) attend(now time.Time) (again time.Time) {
	if m.leaving {
		return time.Time{}
	}
	asked, waits := m.r.asking()
	absent, again := m.attention.Look(now, asked, waits)
	switch {
	case !absent && m.absence != present:
		m.absence = present
		m.r.away.Store(false)
		m.member.Resume(now)
	case absent && m.absence == present:
		m.r.away.Store(true)
		if _, waits := m.r.asking(); waits { // it asked before it could know that it has to tell
			m.r.away.Store(false)
			return now
		}
		m.part()
	case absent && m.absence == departed:
		m.member.Suspend(now) // also one that had not begun before
	}
	return again
}

// part commits what is marked, for nothing of it can be committed later, and suspends the member
// then, unless the application has come back.
func (m *membership) part() {
	m.absence = parting
	m.r.errLog.Warn("the application does not ask for messages: leaving the group until it does",
		"group", m.r.cfg.GroupID, "maxPollInterval", m.set.MaxPollInterval)
	m.r.count(func(st *ReaderStats) { st.Absences++ })
	m.work(func() {
		ctx, cancel := context.WithTimeout(m.life, leaveWithin)
		defer cancel()
		if err := m.flush(ctx, nil, false); err != nil && m.life.Err() == nil {
			m.commitFailed(err)
		}
		m.tell(func(now time.Time) {
			if m.absence == parting && !m.leaving {
				m.absence = departed
				m.joins.cut() // a JoinGroup under way must not make it a member after all
				m.member.Suspend(now)
			}
		})
	})
}
