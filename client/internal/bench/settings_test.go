package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/record"
)

// settings are the flags that every program takes.
type settings struct {
	Lib       string `json:"-"` // "kbench", or one of the peers'
	Mode      string `json:"-"` // what is done; see modes
	Bootstrap string `json:"-"`
	Topic     string `json:"-"`

	N          int64         `json:"n"`    // messages; producers, in mode idle
	Size       int           `json:"size"` // bytes of a value
	Acks       string        `json:"acks"`
	Codec      string        `json:"codec"` // at its default level
	Idempotent bool          `json:"idempotent"`
	InFlight   int           `json:"inFlight"` // requests on the connection
	Batch      int           `json:"batch"`    // bytes, before compression
	Request    int           `json:"request"`  // bytes of all its batches
	Linger     time.Duration `json:"lingerNs"` // longest wait for a batch to fill

	Profile string `json:"-"` // file for a CPU profile; empty: none
}

// args are the flags, without those that the program is known not to take.
func (s settings) args(takes func(flag string) bool) []string {
	args := []string{
		"-lib", s.Lib, "-mode", s.Mode, "-n", strconv.FormatInt(s.N, 10), "-size", strconv.Itoa(s.Size),
		"-b", s.Bootstrap, "-t", s.Topic, "-acks", s.Acks, "-c", s.Codec, "-idem=" + strconv.FormatBool(s.Idempotent),
	}
	for _, f := range [][2]string{
		{"inflight", strconv.Itoa(s.InFlight)}, {"batch", strconv.Itoa(s.Batch)}, {"request", strconv.Itoa(s.Request)},
		{"linger", s.Linger.String()}, {"cpuprofile", s.Profile},
	} {
		if f[1] != "" && takes(f[0]) {
			args = append(args, "-"+f[0], f[1])
		}
	}
	return args
}

func parseSettings(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("kbench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.Lib, "lib", "kbench", "")
	f.StringVar(&s.Mode, "mode", "callback", "")
	f.Int64Var(&s.N, "n", 1_000_000, "")
	f.IntVar(&s.Size, "size", 100, "")
	f.StringVar(&s.Bootstrap, "b", "127.0.0.1:9092", "")
	f.StringVar(&s.Topic, "t", "p1", "")
	f.StringVar(&s.Acks, "acks", "all", "")
	f.StringVar(&s.Codec, "c", "none", "")
	f.BoolVar(&s.Idempotent, "idem", true, "")
	f.IntVar(&s.InFlight, "inflight", 5, "")
	f.IntVar(&s.Batch, "batch", 1_000_000, "")
	f.IntVar(&s.Request, "request", 100<<20, "")
	f.DurationVar(&s.Linger, "linger", 10*time.Millisecond, "")
	f.StringVar(&s.Profile, "cpuprofile", "", "")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case s.Lib != "kbench":
		return s, fmt.Errorf("-lib %s: this program is kbench", s.Lib)
	case modes[s.Mode] == nil:
		return s, fmt.Errorf("-mode %s: there is none of this name", s.Mode)
	case s.N < 1 || s.Size < 0 || s.Size > 1<<20:
		return s, errors.New("-n must be positive, -size 0 to 1 MiB")
	}
	return s, nil
}

// config is what the settings mean to this client.
func (s settings) config() (*client.Config, error) {
	cfg := client.NewConfig()
	cfg.Net.MaxOpenRequests = s.InFlight
	p := &cfg.Producer
	p.Idempotent, p.MaxMessageBytes, p.MaxRequestBytes, p.Flush.Frequency = s.Idempotent, s.Batch, s.Request, s.Linger
	if err := p.RequiredAcks.UnmarshalText([]byte(s.Acks)); err != nil {
		return nil, fmt.Errorf("-acks: %w", err)
	}
	if err := p.Compression.UnmarshalText([]byte(s.Codec)); err != nil {
		return nil, fmt.Errorf("-c: %w", err)
	}
	p.CompressionLevel, p.Flush.MaxMessages = record.DefaultLevel, s.perBatch()
	p.NewPartitioner = func(string) client.Partitioner { return &turns{each: s.perBatch()} }
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// perBatch is how many messages fill a batch: a record has up to 11 bytes beside a value of these
// sizes. Clients count bytes in different ways, so that those that can are told the number.
func (s settings) perBatch() int { return max(1, s.Batch/(s.Size+11)) }

// partitions is how many the topic has, where a figure says nothing else.
const partitions = 6

// turns is a partitioner that fills one partition's batch after the other's. Most clients have
// such a one; with it, and one batch a request, requests of all clients are alike.
type turns struct{ each, left, turn int }

// Partition stays with a partition for a batch.
func (p *turns) Partition(_ *client.ProducerMessage, partitions int32) (int32, error) {
	if p.left == 0 {
		p.left = p.each
		p.turn++
	}
	p.left--
	return int32(p.turn % int(partitions)), nil
}

// RequiresConsistency is false: any partition will do.
func (*turns) RequiresConsistency(*client.ProducerMessage) bool { return false }

func (s settings) bootstrap() []string { return strings.Split(s.Bootstrap, ",") }

// values are what is sent in turn, the same bytes in every program: the first 60 % of each are
// shared text and the rest differs, so that codecs have honest work.
type values struct {
	all  [4096][]byte
	any  [4096]any // the same, so that none has to be wrapped when it is sent
	turn int
}

func newValues(size int) *values {
	v := new(values)
	x := uint64(88172645463325252)
	for i := range v.all {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte('A' + j%26)
			if j >= size*6/10 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				b[j] = byte(x)
			}
		}
		v.all[i], v.any[i] = b, b
	}
	return v
}

func (v *values) next() []byte {
	v.turn++
	return v.all[v.turn%len(v.all)]
}

func (v *values) nextAny() any {
	v.turn++
	return v.any[v.turn%len(v.any)]
}
