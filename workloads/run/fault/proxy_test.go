package fault

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProxyForwardsByteForByte(t *testing.T) {
	b := newBed(t, Options{Buffer: 10_000}) // less than an answer: the sender waits for room
	c := b.dial()
	var want [][]byte
	for i := range 200 {
		want = append(want, c.send(i*i%977*100, i*37))
	}
	for _, w := range want {
		c.receive(w)
	}
	s := b.proxy.Stats(AllNodes)
	require.Equal(t, 1, s.Open)
	require.EqualValues(t, 1, s.Accepted)
	require.Greater(t, s.ToClient, s.ToBroker)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return b.proxy.Stats(AllNodes).Open == 0 }, patience, time.Millisecond)
	require.NoError(t, b.proxy.Err())
}

// The best of many round trips shows what the proxy itself is late by; the machine may be late
// by anything.
func TestDelayIsAccurate(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	best := func(n int) time.Duration {
		var took []time.Duration
		for range n {
			took = append(took, c.call(10))
		}
		slices.Sort(took)
		return took[n/10]
	}
	plain := best(100)
	const delay = 5 * time.Millisecond
	b.set(Slow(delay))
	slow := best(50)
	t.Logf("a round trip takes %v, with %v of delay %v", plain, delay, slow)
	require.GreaterOrEqual(t, slow, delay, "never too short")
	require.Less(t, slow-plain-delay, 700*time.Microsecond, "both directions together")
	b.set(Fault{})
	require.Less(t, best(20), delay, "the fault is over")
}

func TestDelayDoesNotNarrowThePath(t *testing.T) {
	b := newBed(t, Options{})
	b.set(Fault{ToClient: Path{Delay: 50 * time.Millisecond}})
	c := b.dial()
	began := time.Now()
	var want [][]byte
	for range 100 {
		want = append(want, c.send(1000, 0))
	}
	for _, w := range want {
		c.receive(w)
	}
	took := time.Since(began)
	require.GreaterOrEqual(t, took, 50*time.Millisecond)
	require.Less(t, took, 100*50*time.Millisecond/4, "answers are under way together")
}

// Frame by frame, what is drawn depends on the seed alone.
func TestJitterFollowsTheSeed(t *testing.T) {
	p := &Proxy{o: Options{Seed: 7}, life: t.Context()}
	other := &Proxy{o: Options{Seed: 8}, life: t.Context()}
	draws := func(p *Proxy, number int, conn uint64, way int) (out []time.Duration) {
		l := &link{proxy: p, number: number}
		jitter := Path{Delay: time.Second, Jitter: time.Millisecond}
		l.now.Store(&setting{Fault: Fault{ToBroker: jitter, ToClient: jitter}})
		tn := newTunnel(l, nil, conn)
		defer tn.end()
		for range 50 {
			out = append(out, tn.shift(way))
		}
		return out
	}
	first := draws(p, 1, 2, up)
	require.Equal(t, first, draws(p, 1, 2, up))
	for _, d := range first {
		require.GreaterOrEqual(t, d, time.Second)
		require.LessOrEqual(t, d, time.Second+time.Millisecond)
	}
	require.Greater(t, slices.Max(first)-slices.Min(first), 500*time.Microsecond, "spread")
	for name, draw := range map[string][]time.Duration{
		"seed": draws(other, 1, 2, up), "broker": draws(p, 2, 2, up), "connection": draws(p, 1, 3, up), "direction": draws(p, 1, 2, down),
	} {
		require.NotEqual(t, first, draw, "another %s", name)
	}
}

func TestJitterKeepsOrder(t *testing.T) {
	b := newBed(t, Options{})
	b.set(Fault{ToBroker: Path{Jitter: 3 * time.Millisecond}, ToClient: Path{Jitter: 3 * time.Millisecond}})
	c := b.dial()
	var want [][]byte
	for i := range 200 {
		want = append(want, c.send(i, 0))
	}
	for _, w := range want {
		c.receive(w)
	}
}

func TestStallHoldsAndLosesNothing(t *testing.T) {
	for name, f := range map[string]Fault{
		"requests": {ToBroker: Path{Stall: true}}, "answers": {ToClient: Path{Stall: true}}, "both": Stalled(),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, Options{})
			c := b.dial()
			c.call(1)
			b.set(f)
			want := c.send(100, 50_000)
			c.silent()
			if f.ToBroker.Stall {
				require.Equal(t, 1, b.broker.requests())
			} else {
				require.Eventually(t, func() bool { return b.broker.requests() == 2 }, patience, time.Millisecond)
			}
			b.set(Fault{})
			c.receive(want)
			c.call(1)
		})
	}
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	const most = 10_000
	b := newBed(t, Options{Buffer: most})
	c := b.dial()
	c.call(1)
	b.set(Stalled())
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := c.Write(make([]byte, 64<<20))
	require.Error(t, err, "the sender is held up")
	for _, tn := range b.proxy.links[0].tunnels() {
		l := tn.lines[up]
		l.mu.Lock()
		require.LessOrEqual(t, l.queue.held(), most+chunkBytes)
		l.mu.Unlock()
	}
}

func TestForEndsTheFault(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	c.call(1)
	want := make(chan []byte, 1)
	go func() { want <- c.send(1, 0) }() // ends at once
	began := time.Now()
	require.NoError(t, b.proxy.For(t.Context(), AllNodes, Stalled(), 30*time.Millisecond))
	c.receive(<-want)
	require.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.proxy.For(ctx, AllNodes, Stalled(), time.Hour), context.Canceled)
	c.call(1)
}

func TestBlackHoleSwallowsForGood(t *testing.T) {
	for name, f := range map[string]Fault{
		"requests": {ToBroker: Path{Vanish: true}}, "answers": {ToClient: Path{Vanish: true}}, "both": BlackHole(),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, Options{})
			c := b.dial()
			c.call(1)
			b.set(f)
			c.send(100, 0)
			c.silent()
			into := b.dial()
			into.send(1, 0)
			into.silent()
			b.set(Fault{})
			c.silent()
			c.send(1, 0)
			c.silent() // what came after the gap would not be understood
			into.silent()
			b.dial().call(1) // a new connection is whole
			if f == BlackHole() {
				b.set(f)
				b.broker.stop()
				b.dial().silent() // not even the end of the broker is told
			}
			require.NoError(t, c.Close())
			require.NoError(t, into.Close())
			require.Eventually(t, func() bool { return b.proxy.Stats(AllNodes).Open <= 2 }, patience, time.Millisecond)
		})
	}
}

func TestRefusedConnections(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	c.call(1)
	for range 2 {
		b.set(Fault{Refuse: true})
		_, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.proxy.Addrs()[0])
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		c.call(1) // open ones go on
		b.set(Fault{})
		b.dial().call(1)
	}
}

func TestCutConnections(t *testing.T) {
	for how, want := range map[End]error{Reset: syscall.ECONNRESET, Finish: io.EOF} {
		t.Run(how.String(), func(t *testing.T) {
			b := newBed(t, Options{})
			c, other := b.dial(), b.dial()
			c.call(1)
			other.call(1)
			c.send(0, 100_000) // something on the way
			require.Equal(t, 2, b.proxy.Cut(AllNodes, how))
			require.EqualValues(t, 2, b.proxy.Stats(AllNodes).Cut)
			if how == Finish {
				require.Never(t, func() bool { return b.proxy.Stats(AllNodes).Open < 2 }, 50*time.Millisecond, 5*time.Millisecond,
					"read on until the other side ends too: closing with something unread is a reset")
			}
			_, err := io.Copy(io.Discard, c)
			if how == Finish {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, want)
			}
			_ = c.Close()
			_ = other.Close()
			require.Eventually(t, func() bool { return b.proxy.Stats(AllNodes).Open == 0 }, patience, time.Millisecond)
			b.dial().call(1)
		})
	}
}

func TestNarrowPath(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	c.call(1)
	b.set(Fault{ToClient: Path{BytesPerSecond: 1_000_000}})
	took := c.call(100_000)
	require.GreaterOrEqual(t, took, 100*time.Millisecond-burst-time.Millisecond)
	require.Less(t, took, 5*time.Second)
}

func TestBothSidesMayEndAConnection(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	want := c.send(1000, 0)
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, want, got, "what was asked for before the end is answered")

	c = b.dial()
	c.call(1)
	b.broker.stop()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err, "the broker's end is the client's")
	gone, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.proxy.Addrs()[0])
	if err == nil { // the reset may come before the system tells of the connection
		_, err = gone.Read(make([]byte, 1))
		_ = gone.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNRESET, "a broker that is gone")
}

func TestClientsThatSpeakTLSAreToldApart(t *testing.T) {
	b := newBed(t, Options{})
	c := b.dial()
	_, err := c.Write([]byte{0x16, 3, 1, 2, 0, 1})
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	require.ErrorContains(t, b.proxy.Err(), "speaks TLS")
}

func TestWhatAProxyRefuses(t *testing.T) {
	_, err := New(t.Context(), nil, Options{})
	require.ErrorContains(t, err, "at least one host:port")
	_, err = New(t.Context(), []string{"localhost"}, Options{})
	require.ErrorContains(t, err, `"localhost"`)
	_, err = New(t.Context(), []string{"localhost:9092"}, Options{Host: "192.0.2.1"})
	require.ErrorContains(t, err, "listening for broker localhost:9092")

	b := newBed(t, Options{})
	err = b.proxy.Set(1, Fault{ToBroker: Path{Delay: -1, BytesPerSecond: -1}, ToClient: Path{Jitter: 2 * time.Hour}})
	require.Equal(t, 3, strings.Count(err.Error(), "fault: "), "every problem at once: %v", err)
}

func TestContextEndsEverything(t *testing.T) {
	broker := startAnswerer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := New(ctx, []string{broker.addr()}, Options{})
	require.NoError(t, err)
	b := &bed{T: t, broker: broker, proxy: p}
	var open []*caller
	for _, f := range []Fault{{}, Stalled(), BlackHole(), Slow(time.Hour)} {
		b.set(f)
		c := b.dial()
		c.send(100, 100)
		open = append(open, c)
	}
	cancel(errors.New("interrupted"))
	for _, c := range open {
		_, err := io.Copy(io.Discard, c)
		require.Error(t, err, "reset, whatever it suffers")
	}
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err = new(net.Dialer).DialContext(t.Context(), "tcp", p.Addrs()[0])
	require.Error(t, err)
	require.NoError(t, p.Set(AllNodes, Fault{Refuse: true}), "too late, and no harm")
}
