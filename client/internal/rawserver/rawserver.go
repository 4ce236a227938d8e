// Package rawserver is a scripted TCP server for tests of what speaks the Kafka protocol: it
// frames requests, answers ApiVersions from a table, and leaves every other request to a
// function of the test, which may answer raw bytes, late, never, or hang up. It does not check
// what it sends, so that it can play a broken or hostile broker.
package rawserver

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// Request is one request as read from a connection.
type Request struct {
	Conn     int // number of the connection, from 0 in the order of accepting
	Key      int16
	Version  int16
	Corr     int32
	ClientID string
	Body     []byte // after the header; owned by the script
}

// Decode parses the body by the protocol's definitions; nil when it cannot be parsed.
func (r Request) Decode() kmsg.Request {
	req := kmsg.RequestForKey(r.Key)
	if req == nil {
		return nil
	}
	req.SetVersion(r.Version)
	if req.ReadFrom(r.Body) != nil {
		return nil
	}
	return req
}

// Reply says what to do with a request. The zero value sends nothing and goes on, as a broker
// does for acks=0. Fields act in this order: Wait, Delay, Raw, Body, Close.
type Reply struct {
	Wait  <-chan struct{} // wait until it is closed (or the server is)
	Delay time.Duration   // then wait this long
	Raw   []byte          // then send these bytes as they are: no length, no header
	Body  []byte          // then send a well-framed answer with this body; nil: none
	Close bool            // then close the connection
}

// Respond is a well-framed Reply with a response of the request's version.
func Respond(req Request, resp kmsg.Response) Reply {
	resp.SetVersion(req.Version)
	return Reply{Body: resp.AppendTo([]byte{})}
}

// Frame is a whole answer to req: length, response header, body.
func Frame(req Request, body []byte) []byte { return FrameAs(req, req.Corr, body) }

// FrameAs is Frame with a correlation id of the caller's.
func FrameAs(req Request, corr int32, body []byte) []byte {
	b := append(make([]byte, 4, 16+len(body)), byte(corr>>24), byte(corr>>16), byte(corr>>8), byte(corr))
	if wire.FlexibleResponseHeader(req.Key, req.Version) {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// Script plays the broker.
type Script struct {
	// Versions is what ApiVersions answers; nil: the client's own table, wire.Versions. A table
	// without key 18 makes the server answer every ApiVersions above 0 with UNSUPPORTED_VERSION,
	// as old brokers do.
	Versions map[int16]wire.Range
	// Features are the finalised features and their levels.
	Features map[string]int16
	// Handle answers a request. It is called by one goroutine per connection, in order. nil
	// sends nothing.
	Handle func(Request) Reply
	// RawAPIVersions leaves ApiVersions to Handle too.
	RawAPIVersions bool
	// Accepted takes over a connection as soon as it is accepted, before anything is read; when
	// it returns, the connection is closed. nil: the server reads requests.
	Accepted func(net.Conn)
	// Opened takes over a connection after its ApiVersions has been answered; when it returns, the
	// connection is closed. nil: the server goes on.
	Opened func(net.Conn)
	// TLS makes it a TLS listener.
	TLS *tls.Config
}

// Server is a running script.
type Server struct {
	script Script
	ln     net.Listener
	done   chan struct{} // closed by Close; read by everything that waits

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	count int
	wg    sync.WaitGroup // the accept loop and every connection's goroutine
}

// Start listens on a free port of the loopback interface.
func Start(script Script) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if script.TLS != nil {
		ln = tls.NewListener(ln, script.TLS)
	}
	s := newServer(script)
	s.ln = ln
	s.wg.Add(1)
	// Owned by the server; Close stops it by closing the listener, and waits.
	go s.accept()
	return s, nil
}

func newServer(script Script) *Server {
	if script.Versions == nil {
		script.Versions = wire.Versions
	}
	return &Server{script: script, done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
}

// StartPipes is a server without a listener, for tests inside a synctest bubble, where real
// sockets do not work: connections come from Pipe.
func StartPipes(script Script) *Server { return newServer(script) }

// Pipe makes a connection to the server over net.Pipe.
func (s *Server) Pipe() (net.Conn, error) {
	client, server := net.Pipe()
	if !s.serve(server) {
		_ = client.Close()
		return nil, net.ErrClosed
	}
	return client, nil
}

// Addr is the listener's host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Accepted is how many connections there have been.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// CloseConnections closes every open connection, as a broker does with idle ones.
func (s *Server) CloseConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Close stops the server and waits for its goroutines. Safe to call twice.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.mu.Unlock()
	if s.ln != nil {
		_ = s.ln.Close()
	}
	s.CloseConnections()
	s.wg.Wait()
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.serve(c)
	}
}

// serve starts a connection's goroutine, unless the server is closed.
func (s *Server) serve(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		_ = c.Close()
		return false
	default:
	}
	number := s.count
	s.count++
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	// Owned by the server; ends when its connection does. Close closes that, and waits.
	go func() {
		defer s.wg.Done()
		s.loop(c, number)
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	return true
}

func (s *Server) loop(c net.Conn, number int) {
	if s.script.Accepted != nil {
		s.script.Accepted(c)
		return
	}
	for {
		req, err := read(c)
		if err != nil {
			return
		}
		req.Conn = number
		if !s.send(c, req, s.reply(req)) {
			return
		}
		if s.script.Opened != nil && req.Key == 18 {
			s.script.Opened(c)
			return
		}
	}
}

func (s *Server) reply(req Request) Reply {
	switch {
	case req.Key == 18 && !s.script.RawAPIVersions:
		return s.apiVersions(req)
	case s.script.Handle == nil:
		return Reply{}
	}
	return s.script.Handle(req)
}

// send carries a reply out; false ends the connection.
func (s *Server) send(c net.Conn, req Request, r Reply) bool {
	if r.Wait != nil {
		select {
		case <-r.Wait:
		case <-s.done:
			return false
		}
	}
	if r.Delay > 0 {
		t := time.NewTimer(r.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.done:
			return false
		}
	}
	out := r.Raw
	if r.Body != nil {
		out = append(out[:len(out):len(out)], Frame(req, r.Body)...)
	}
	if len(out) > 0 {
		if _, err := c.Write(out); err != nil {
			return false
		}
	}
	return !r.Close
}

// read reads one request and takes its header off.
func read(c net.Conn) (Request, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return Request{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 64<<20 {
		return Request{}, wire.ErrLength
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return Request{}, err
	}
	return ParseRequest(b)
}

// ParseRequest takes the header off a request whose length prefix has been read already.
func ParseRequest(b []byte) (Request, error) {
	var r wire.Reader
	r.Reset(b, false) // the client id is never compact
	req := Request{Key: r.Int16(), Version: r.Int16(), Corr: r.Int32()}
	id, _ := r.NullableStr()
	req.ClientID = string(id)
	if r.Err() == nil && wire.Flexible(req.Key, req.Version) {
		rest := b[r.Offset():]
		r.Reset(rest, true)
		r.Tags()
		b = rest
	}
	if r.Err() != nil {
		return Request{}, r.Err()
	}
	req.Body = b[r.Offset():]
	return req, nil
}

func (s *Server) apiVersions(req Request) Reply {
	resp := kmsg.NewPtrApiVersionsResponse()
	own := s.script.Versions[18]
	version := req.Version
	if version > own.Max {
		resp.ErrorCode = wire.ErrUnsupportedVersion.Code
		version = 0
	}
	for key, r := range s.script.Versions {
		if resp.ErrorCode != 0 && key != 18 {
			continue
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = key, r.Min, r.Max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	for name, level := range s.script.Features {
		f := kmsg.NewApiVersionsResponseFinalizedFeature()
		f.Name, f.MaxVersionLevel, f.MinVersionLevel = name, level, level
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, f)
	}
	resp.SetVersion(version)
	return Reply{Body: resp.AppendTo([]byte{})}
}
