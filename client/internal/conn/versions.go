package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// What we call ourselves in ApiVersions (KIP-511); brokers allow letters, digits, '-' and '.'.
const (
	softwareName    = "kbench"
	softwareVersion = "1"
)

const keyAPIVersions = 18

// Version is the version that requests of a key are sent in: the highest that the broker, our
// table and the user's cap have in common, else a *wire.VersionError with all the ranges.
func (c *Conn) Version(key int16) (int16, error) { return c.version(key, 0) }

// version is Version with a cap of the request's own; 0: none.
func (c *Conn) version(key, limit int16) (int16, error) {
	var broker *wire.Range
	if r, ok := c.broker[key]; ok {
		broker = &r
	}
	var capped *int16
	if c.o.MaxVersions != nil {
		if v, ok := c.o.MaxVersions(key); ok {
			capped = &v
		}
	}
	if limit > 0 && (capped == nil || limit < *capped) {
		capped = &limit
	}
	v, err := wire.Negotiate(key, broker, capped)
	var fail *wire.VersionError
	if errors.As(err, &fail) {
		fail.Addr = c.addr
	}
	return v, err
}

// Feature is the level of a feature that the cluster has finalised (KIP-584), such as
// "transaction.version" or "group.version"; 0 when it has not, as of the connection's opening.
func (c *Conn) Feature(name string) int16 { return c.features[name] }

// askVersions fills what the broker speaks. It starts at our highest version; a broker that does
// not know that one answers UNSUPPORTED_VERSION in version 0, with its own range from Kafka 2.4
// on (KIP-511). Called once, with the turn held.
func (c *Conn) askVersions(ctx context.Context) error {
	ours := wire.Versions[keyAPIVersions]
	version := ours.Max
	for {
		resp, err := c.askVersionsAt(ctx, version)
		if err != nil {
			return err
		}
		if resp.ErrorCode == wire.ErrUnsupportedVersion.Code && version > 0 {
			version = fallback(resp, ours, version)
			continue
		}
		if err := wire.ErrorFor(resp.ErrorCode); err != nil {
			return &OpenError{Addr: c.addr, Kind: ErrSetUp, Err: fmt.Errorf("ApiVersions: %w", err)}
		}
		c.keepVersions(resp)
		return nil
	}
}

// fallback is the version to try after one was refused: lower every time, so that it ends.
func fallback(resp *kmsg.ApiVersionsResponse, ours wire.Range, refused int16) int16 {
	for _, k := range resp.ApiKeys {
		if v := min(k.MaxVersion, ours.Max); k.ApiKey == keyAPIVersions && v >= 0 && v < refused {
			return v
		}
	}
	return 0
}

func (c *Conn) askVersionsAt(ctx context.Context, version int16) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = softwareName, softwareVersion
	req.SetVersion(version)
	body, err := c.roundTrip(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	var r wire.Reader
	r.Reset(body, false)
	if r.Int16() == wire.ErrUnsupportedVersion.Code {
		version = 0
	}
	resp.SetVersion(version)
	return resp, c.decode(resp, body)
}

func (c *Conn) keepVersions(resp *kmsg.ApiVersionsResponse) {
	c.broker = make(map[int16]wire.Range, len(resp.ApiKeys))
	for _, k := range resp.ApiKeys {
		c.broker[k.ApiKey] = wire.Range{Min: k.MinVersion, Max: k.MaxVersion}
	}
	c.features = make(map[string]int16, len(resp.FinalizedFeatures))
	for _, f := range resp.FinalizedFeatures {
		c.features[f.Name] = f.MaxVersionLevel
	}
	c.Throttle(time.Duration(resp.ThrottleMillis) * time.Millisecond)
}
