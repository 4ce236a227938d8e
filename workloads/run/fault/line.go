package fault

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// line is one direction of a connection: what its reader takes from one side is under way in a
// queue until its writer gives it to the other side.
type line struct {
	ctx    context.Context // of the connection
	to     net.Conn
	path   func() (Path, <-chan struct{}) // in force now, and what closes when another is
	most   int                            // bytes held
	happen func(event)                    // what ends the connection
	total  *atomic.Int64                  // bytes forwarded

	gone atomic.Bool // this direction swallows everything, for good

	mu    sync.Mutex
	queue queue

	more chan struct{} // capacity 1; written by the reader, read by the writer; never closed
	room chan struct{} // capacity 1; written by the writer, read by the reader; never closed
}

func newLine(ctx context.Context, to net.Conn, most int) *line {
	return &line{ctx: ctx, to: to, most: most, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// add puts bytes on their way; deliver must follow.
func (l *line) add(p []byte, at time.Time) {
	if l.gone.Load() {
		return
	}
	l.mu.Lock()
	l.queue.add(p, at)
	l.mu.Unlock()
}

// end puts an event at the end of what is on its way; deliver must follow.
func (l *line) end(then event, at time.Time) {
	l.mu.Lock()
	l.queue.end(then, at)
	l.mu.Unlock()
}

// deliver tells the writer, and waits while the line holds as much as it may.
func (l *line) deliver() {
	signal(l.more)
	for {
		l.mu.Lock()
		full := l.queue.held() >= l.most
		l.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-l.room:
		case <-l.ctx.Done():
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// chunkBytes is the most that is read and written at a time.
const chunkBytes = 64 << 10

// write forwards what is due until the connection ends.
func (l *line) write() {
	w := newWaiter()
	defer w.close()
	buf := make([]byte, chunkBytes)
	for l.ctx.Err() == nil {
		path, changed := l.path()
		var n int
		then, until := nothing, far
		if !path.Stall {
			l.mu.Lock()
			n, then, until = l.queue.take(buf, path.BytesPerSecond, time.Now())
			l.mu.Unlock()
		}
		switch {
		case then != nothing:
			l.happen(then)
			return
		case n == 0:
			w.wait(l.ctx, until, l.more, changed)
			continue
		}
		signal(l.room)
		if _, err := l.to.Write(buf[:n]); err != nil {
			l.happen(broken(err))
			return
		}
		l.total.Add(int64(n))
	}
}
