package client

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/fetch"
)

// finish is the last thing that a source does.
func (s *source) finish() {
	broken := s.conn == nil || s.conn.Err() != nil
	s.disconnect(nil)
	if broken && s.r.life.Err() == nil {
		return // its partitions were given back because the broker does not answer
	}
	s.endSession()
}

// sessionWithin bounds the wait for a broker to end a fetch session.
const sessionWithin = time.Second

// endSession lets the broker forget the fetch session (KIP-227), of which it has only so many: it
// would keep this one for minutes, in the place of somebody else's. The request goes over the shared
// connection, for the source's own may still wait for data. Whether it arrives makes no difference
// to us.
func (s *source) endSession() {
	s.r.mu.Lock()
	id := s.session.End()
	s.r.mu.Unlock()
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.r.client.life, sessionWithin)
	defer cancel()
	req := kmsg.NewPtrFetchRequest()
	req.SessionID, req.SessionEpoch = id, fetch.FinalEpoch
	if _, err := s.broker.Request(ctx, req); err != nil {
		s.r.log.Debug("fetch session not ended", "broker", s.broker.addr, "error", err)
	}
}
