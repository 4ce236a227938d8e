package rawserver

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kbench/kbench/client/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request and reads one answer, without its length.
func ask(t *testing.T, c net.Conn, req kmsg.Request, corr int32) []byte {
	t.Helper()
	_, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, corr))
	require.NoError(t, err)
	var size [4]byte
	_, err = io.ReadFull(c, size[:])
	require.NoError(t, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, corr, int32(binary.BigEndian.Uint32(b)))
	return b[4:]
}

func dial(t *testing.T, s *Server) net.Conn {
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func run(t *testing.T, script Script) *Server {
	s, err := Start(script)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestApiVersions(t *testing.T) {
	s := run(t, Script{Versions: map[int16]wire.Range{18: {Min: 0, Max: 3}, 0: {Min: 3, Max: 9}}, Features: map[string]int16{"f": 2}})
	c := dial(t, s)
	for v := range int16(5) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.SetVersion(v)
		body := ask(t, c, req, int32(v))
		resp := kmsg.NewPtrApiVersionsResponse()
		if v > 3 {
			require.NoError(t, resp.ReadFrom(body), "refused in version 0")
			require.Equal(t, int16(35), resp.ErrorCode)
			require.Len(t, resp.ApiKeys, 1, "with its own range alone")
			continue
		}
		resp.SetVersion(v)
		require.NoError(t, resp.ReadFrom(body))
		require.Len(t, resp.ApiKeys, 2)
		require.Len(t, resp.FinalizedFeatures, int(v/3))
	}
}

func TestHandleSeesTheRequest(t *testing.T) {
	got := make(chan Request, 1)
	s := run(t, Script{Handle: func(r Request) Reply {
		got <- r
		return Respond(r, kmsg.NewPtrHeartbeatResponse())
	}})
	for v := range int16(5) { // version 4 has flexible headers
		c := dial(t, s)
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group = "g"
		req.SetVersion(v)
		body := ask(t, c, req, 100)
		if v == 4 {
			require.Zero(t, body[0], "no tagged fields in the header")
			body = body[1:]
		}
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.SetVersion(v)
		require.NoError(t, resp.ReadFrom(body))
		r := <-got
		require.Equal(t, int(v), r.Conn)
		require.Equal(t, "me", r.ClientID)
		require.Equal(t, "g", r.Decode().(*kmsg.HeartbeatRequest).Group)
		r.Body = r.Body[:len(r.Body)/2]
		require.Nil(t, r.Decode())
	}
	require.Equal(t, 5, s.Accepted())
}

func TestRepliesAreCarriedOut(t *testing.T) {
	for _, row := range []struct {
		name  string
		reply Reply
		want  string // all that comes before the connection is closed
	}{
		{"raw bytes, then close", Reply{Raw: []byte("garbage"), Close: true}, "garbage"},
		{"close alone", Reply{Close: true}, ""},
		{"raw bytes and a frame", Reply{Raw: []byte("x"), Body: []byte("y"), Close: true}, "x\x00\x00\x00\x05\x00\x00\x00\x07y"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := run(t, Script{Handle: func(Request) Reply { return row.reply }})
			c := dial(t, s)
			_, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrHeartbeatRequest(), 7))
			require.NoError(t, err)
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, row.want, string(got))
		})
	}
}

func TestDelayOnAVirtualClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartPipes(Script{Handle: func(Request) Reply { return Reply{Delay: time.Hour, Body: []byte{1}} }})
		defer s.Close()
		c, err := s.Pipe()
		require.NoError(t, err)
		defer c.Close()
		began := time.Now()
		ask(t, c, kmsg.NewPtrHeartbeatRequest(), 1)
		require.Equal(t, time.Hour, time.Since(began))
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	arrived := make(chan struct{})
	s := run(t, Script{Handle: func(Request) Reply {
		close(arrived)
		return Reply{Wait: context.Background().Done(), Delay: time.Hour}
	}})
	c := dial(t, s)
	_, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrHeartbeatRequest(), 7))
	require.NoError(t, err)
	<-arrived
	s.Close()
	s.Close()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = s.Pipe()
	require.ErrorIs(t, err, net.ErrClosed)
}

func FuzzParseRequest(f *testing.F) {
	f.Add(kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 3)[4:])
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRequest(b)
		if err == nil && len(r.Body) > len(b) {
			t.Fatal("a body larger than its request")
		}
		_ = r.Decode()
	})
}
