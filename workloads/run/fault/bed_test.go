package fault

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

// answerer is a broker that answers every request with as many bytes as the request asks for.
type answerer struct {
	ln    net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	seen  int // requests
}

func startAnswerer(t testing.TB) *answerer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &answerer{ln: ln}
	b.wg.Go(func() { // ends when the listener is closed by stop, which waits
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns = append(b.conns, c)
			b.mu.Unlock()
			b.wg.Go(func() { b.serve(c) }) // ends with its connection, which stop closes
		}
	})
	t.Cleanup(b.stop)
	return b
}

func (b *answerer) stop() {
	_ = b.ln.Close()
	b.mu.Lock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

func (b *answerer) addr() string { return b.ln.Addr().String() }

func (b *answerer) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

func (b *answerer) serve(c net.Conn) {
	defer c.Close()
	for {
		var head [16]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:4]))-12); err != nil {
			return
		}
		b.mu.Lock()
		b.seen++
		b.mu.Unlock()
		if _, err := c.Write(answerTo(head[8:12], int(binary.BigEndian.Uint32(head[12:])))); err != nil {
			return
		}
	}
}

// answerTo is an answer with size bytes after the correlation id.
func answerTo(corr []byte, size int) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(4+size))
	out = append(out, corr...)
	for i := range size {
		out = append(out, byte(i))
	}
	return out
}

// request is a request of a key that asks for size bytes, with extra bytes of its own.
func request(key int16, corr uint32, size, extra int) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(12+extra))
	out = binary.BigEndian.AppendUint16(out, uint16(key))
	out = binary.BigEndian.AppendUint16(out, 0)
	out = binary.BigEndian.AppendUint32(out, corr)
	out = binary.BigEndian.AppendUint32(out, uint32(size))
	return append(out, make([]byte, extra)...)
}

// heartbeat is a key whose answers have no addresses.
const heartbeat = 12

// bed is a proxy in front of one answerer.
type bed struct {
	*testing.T
	broker *answerer
	proxy  *Proxy
}

func newBed(t *testing.T, o Options) *bed {
	b := &bed{T: t, broker: startAnswerer(t)}
	var err error
	b.proxy, err = New(t.Context(), []string{b.broker.addr()}, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.proxy.Close()) })
	return b
}

func (b *bed) set(f Fault) { require.NoError(b, b.proxy.Set(AllNodes, f)) }

// caller is a client's connection.
type caller struct {
	*testing.T
	net.Conn
	corr uint32
}

func (b *bed) dial() *caller {
	c, err := new(net.Dialer).DialContext(b.Context(), "tcp", b.proxy.Addrs()[0])
	require.NoError(b, err)
	require.NoError(b, c.SetDeadline(time.Now().Add(patience)))
	b.Cleanup(func() { _ = c.Close() })
	return &caller{T: b.T, Conn: c}
}

func (c *caller) send(size, extra int) []byte {
	c.corr++
	_, err := c.Write(request(heartbeat, c.corr, size, extra))
	require.NoError(c, err)
	return answerTo(binary.BigEndian.AppendUint32(nil, c.corr), size)
}

// receive reads a whole answer and requires it to be as it should.
func (c *caller) receive(want []byte) {
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(c, err)
	require.Equal(c, want, got)
}

// call is a round trip, and how long it took.
func (c *caller) call(size int) time.Duration {
	began := time.Now()
	c.receive(c.send(size, 0))
	return time.Since(began)
}

// silent requires that nothing arrives for a moment.
func (c *caller) silent() {
	require.NoError(c, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := c.Read(make([]byte, 1))
	require.Zero(c, n)
	var timeout net.Error
	require.ErrorAs(c, err, &timeout)
	require.True(c, timeout.Timeout(), "%v", err)
	require.NoError(c, c.SetDeadline(time.Now().Add(patience)))
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
