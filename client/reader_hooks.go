package client

import (
	"fmt"
	"time"

	"github.com/kbench/kbench/client/internal/group"
)

// HookError says that a function of the user's had not returned when its reader ended, and was
// waited for no longer. Its goroutine goes on until it does; what it commits then is not taken.
type HookError struct {
	Hook   string        // ReaderConfig.OnAssigned, ReaderConfig.OnRevoked or ReaderConfig.OnFetch
	Waited time.Duration // since the reader began to close, or its group to be left
}

func (e *HookError) Error() string {
	return fmt.Sprintf("%s had not returned %v after the reader began to close: it was not waited for, and nothing that it has yet to commit is taken; "+
		"let it return when what it waits for takes too long", e.Hook, e.Waited)
}

// hook calls a function of the user's, whose panics stay here, and waits for it: as long as it takes
// while the member is one, and until hooksOver when it leaves. After one that did not return by
// then no other is called, for they come one at a time.
func (m *membership) hook(where string, fn func(int32, []TopicPartition), generation int32, parts []group.Partition) {
	if fn == nil || m.stuckHook() != nil {
		return
	}
	done := make(chan struct{})
	// Owned by the user, whose function nobody can end; who calls waits within bounds. It touches
	// nothing of the membership's.
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				m.r.count(func(st *ReaderStats) { st.Panics++ })
				m.r.errLog.Error("reader hook failed", "error", &PanicError{Where: where, Value: v})
			}
		}()
		fn(generation, partitionsOf(parts))
	}()
	slow := time.AfterFunc(m.set.RebalanceTimeout, func() {
		m.r.errLog.Warn("a reader's hook holds the rebalance up for longer than the group waits",
			"group", m.r.cfg.GroupID, "hook", where, "rebalanceTimeout", m.set.RebalanceTimeout)
	})
	defer slow.Stop()
	select {
	case <-done:
	case <-m.hooksOver:
		m.leaveHook(where, done)
	}
}

// leaveHook notes that a function is waited for no longer, unless it has just returned.
func (m *membership) leaveHook(where string, done <-chan struct{}) {
	select {
	case <-done:
		return
	default:
	}
	err := &HookError{Hook: where, Waited: m.lastWait()}
	m.r.errLog.Error("reader hook left to itself", "group", m.r.cfg.GroupID, "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck = err
}

// stuckHook is the function that did not return; nil: none.
func (m *membership) stuckHook() *HookError {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stuck
}

// lastWait bounds the waits of a member that leaves: for the user's functions, and for its last commit.
func (m *membership) lastWait() time.Duration { return min(drainWithin, m.set.RebalanceTimeout) }

// boundHooks ends the wait for the user's functions when lastWait has passed. Called by the loop;
// only the first call counts.
func (m *membership) boundHooks() {
	if m.hooksTimer == nil {
		m.hooksTimer = time.AfterFunc(m.lastWait(), func() { close(m.hooksOver) })
	}
}

// awaitEnd waits for the reader's goroutines. All obey life, but for a function of the user's.
func (r *Reader) awaitEnd() error {
	if r.cfg.OnFetch == nil {
		r.wg.Wait()
		return nil
	}
	done := make(chan struct{})
	// Owned by the reader; ends when its goroutines have, which only OnFetch can prevent.
	go func() {
		r.wg.Wait()
		close(done)
	}()
	late := time.NewTimer(drainWithin)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return &HookError{Hook: "ReaderConfig.OnFetch", Waited: drainWithin}
	}
}
