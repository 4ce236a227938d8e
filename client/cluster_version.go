package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kbench/kbench/client/internal/wire"
)

// GuessVersion names the newest Kafka release whose request versions a broker offers all of, as
// "4.1+": brokers do not tell their release. It is empty when not even 2.1 fits.
func (b *Broker) GuessVersion(ctx context.Context) (string, error) {
	resp, err := b.Request(ctx, apiVersions())
	if err != nil {
		return "", err
	}
	offered := map[int16]int16{}
	r := resp.(*kmsg.ApiVersionsResponse)
	if err := wire.ErrorFor(r.ErrorCode); err != nil {
		return "", err
	}
	for _, k := range r.ApiKeys {
		offered[k.ApiKey] = k.MaxVersion
	}
	return guess(offered), nil
}

// apiVersions asks for what a broker offers; brokers refuse the question without a name (KIP-511).
func apiVersions() *kmsg.ApiVersionsRequest {
	r := kmsg.NewPtrApiVersionsRequest()
	r.ClientSoftwareName, r.ClientSoftwareVersion = "kbench", "1"
	return r
}

// guess is the newest release none of whose steps, or those before it, goes beyond what is
// offered.
func guess(offered map[int16]int16) string {
	var known []Version
	for _, steps := range releases {
		for _, s := range steps {
			known = append(known, Version{s.major, s.minor})
		}
	}
	slices.SortFunc(known, func(a, b Version) int { return (a.Major-b.Major)*1000 + a.Minor - b.Minor })
	best := ""
	for _, v := range known {
		for key, steps := range releases {
			for _, s := range steps {
				if s.major == v.Major && s.minor == v.Minor && offered[key] < s.max {
					return best
				}
			}
		}
		best = fmt.Sprintf("%s+", v)
	}
	return best
}

// RoundTrip is the median of a few empty requests on the broker's open connection.
func (b *Broker) RoundTrip(ctx context.Context) (time.Duration, error) {
	const tries = 5
	var took []time.Duration
	for range tries + 1 {
		start := time.Now()
		if _, err := b.Request(ctx, apiVersions()); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	took = took[1:] // the first may have opened the connection
	slices.Sort(took)
	return took[len(took)/2], nil
}
