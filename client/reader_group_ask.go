package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/conn"
	"github.com/kbench/kbench/client/internal/wire"
)

// line is a connection of a membership's own to its coordinator, opened when it is needed. There
// are two: what waits for other members would hold up heartbeats and commits, since brokers answer
// the requests of a connection one after the other.
type line struct {
	turn   chan struct{} // one place: a lock with a context
	broker *Broker
	conn   *conn.Conn
	closed bool
}

func newLine() line { return line{turn: make(chan struct{}, 1)} }

// to is the connection to a broker.
func (l *line) to(ctx context.Context, b *Broker) (*conn.Conn, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.closed {
		return nil, errLeft
	}
	if l.conn != nil && (l.broker != b || l.conn.Err() != nil) {
		l.hangUp()
	}
	if l.conn == nil {
		c, err := b.openPrivate(ctx)
		if err != nil {
			return nil, err
		}
		l.broker, l.conn = b, c
	}
	return l.conn, nil
}

// close ends the line for good; whoever waits for an answer on it is told. Called when nobody
// opens a connection any more, or will soon stop to.
func (l *line) close() {
	l.turn <- struct{}{} // bounded: life has ended, which ends opening
	l.hangUp()
	l.closed = true
	<-l.turn
}

// cut ends the connection, so that what waits for an answer on it ends, unless one is being opened.
func (l *line) cut() {
	select {
	case l.turn <- struct{}{}:
		l.hangUp()
		<-l.turn
	default:
	}
}

func (l *line) hangUp() {
	if l.conn != nil {
		l.conn.Close(nil)
		l.conn = nil
	}
}

// ask sends one request to the coordinator, and looks it up again the next time when the answer is
// that it is another broker, or when it cannot be reached. timeout 0: what suits the request.
// Errors that may pass have class Retriable.
func (m *membership) ask(ctx context.Context, over *line, req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	resp, err := m.askOnce(ctx, over, req, timeout)
	said := err
	if err == nil {
		said = codeOf(resp)
	}
	if class := wire.Classify(said); class.Has(wire.RefreshCoordinator) || err != nil && class.Has(wire.Retriable) {
		m.r.client.forgetCoordinator(m.key)
	}
	return resp, m.judge(kmsg.Key(req.Key()), err)
}

func (m *membership) askOnce(ctx context.Context, over *line, req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	b, err := m.r.client.coordinator(ctx, m.key)
	if err != nil {
		return nil, err
	}
	c, err := over.to(ctx, b)
	if err != nil {
		return nil, err
	}
	resp, err := c.DoWith(ctx, req, conn.Need{Timeout: timeout})
	if err != nil {
		return nil, &addressError{b.addr, err}
	}
	return resp, nil
}

// codeOf is the error that says something of the coordinator: that of the whole answer, or of its
// first partition that has one.
func codeOf(resp kmsg.Response) error {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.SyncGroupResponse:
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.HeartbeatResponse:
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.OffsetFetchResponse:
		if r.ErrorCode == 0 && len(r.Groups) > 0 {
			return wire.ErrorFor(r.Groups[0].ErrorCode)
		}
		return wire.ErrorFor(r.ErrorCode)
	case *kmsg.OffsetCommitResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				if code := r.Topics[i].Partitions[j].ErrorCode; code != 0 {
					return wire.ErrorFor(code)
				}
			}
		}
	}
	return nil
}

// passingError is an error that may pass, of a kind that wire.Classify cannot know to: a wait of
// the client's own that was too short, or an answer against the protocol, of which one or two may
// be the fault of a connection.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// Class is what wire.Classify answers.
func (e *passingError) Class() wire.Class { return wire.Retriable | wire.RefreshCoordinator }

// brokenError is an answer against the protocol that has come once too often to be one damaged
// connection's: trying on does not help.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// Class is what wire.Classify answers.
func (e *brokenError) Class() wire.Class { return wire.Fatal | wire.OutcomeUnknown }

// judge makes what may pass Retriable, and what will not Fatal. Answers against the protocol are
// counted by the request's key: that others are answered well says nothing of these.
func (m *membership) judge(key kmsg.Key, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.suspects, key)
	case suspect(err):
		if m.suspects[key]++; m.suspects[key] < suspectTries {
			return &passingError{err}
		}
		return &brokenError{err}
	case !wire.Classify(err).Has(wire.Retriable) && passing(err):
		return &passingError{err}
	}
	return err
}

var errLeft = errors.New("the reader has left its group")

// again waits before another try, and says whether there may be one.
func (m *membership) again(ctx context.Context, failures int) error {
	if err := m.r.client.sleep(ctx, m.r.client.adminWait(failures)); err != nil {
		return fmt.Errorf("waiting to try again: %w", err)
	}
	return nil
}
