package fault

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// front gives the address to tell clients in place of a node's own. ok is false to leave it.
type front func(node int32, host string, port int32) (newHost string, newPort int32, ok bool)

// Keys of the requests whose answers hold addresses of brokers, besides ApiVersions.
const (
	keyProduce          = 0 // node endpoints since version 10 (KIP-951)
	keyFetch            = 1 // node endpoints since version 16 (KIP-951)
	keyMetadata         = 3
	keyFindCoordinator  = 10
	keyAPIVersions      = 18
	keyDescribeCluster  = 60
	keyShareFetch       = 78
	keyShareAcknowledge = 79
)

// firstWithAddresses is the first version of an answer with addresses in it, by key.
//
// DescribeQuorum tells addresses as well, but only those of controllers, which clients use for
// nothing else than to talk to controllers; requests between brokers do not come through here.
var firstWithAddresses = map[int16]int16{
	keyProduce: 10, keyFetch: 16, keyMetadata: 0, keyFindCoordinator: 0, keyDescribeCluster: 0,
	keyShareFetch: 0, keyShareAcknowledge: 0,
}

// rewritten says whether the answer to a request has to be looked at as a whole: for addresses,
// or to offer no version of such an answer that is newer than this package understands.
func rewritten(key, version int16) bool {
	if key == keyAPIVersions {
		return true
	}
	from, ok := firstWithAddresses[key]
	return ok && version >= from
}

// errTooNew is for an answer of a version that the definitions do not know. The proxy offers
// none, so that the client has gone its own way.
var errTooNew = errors.New("its version is newer than is understood")

// rewrite replaces the addresses in an answer, given whole with its length, and returns it: the
// same slice when there is nothing to replace, so that what does not have to change does not.
func rewrite(frame []byte, x exchange, to front) ([]byte, error) {
	resp := kmsg.ResponseForKey(x.key)
	if resp == nil || x.version > resp.MaxVersion() {
		return frame, errTooNew
	}
	resp.SetVersion(x.version)
	body, err := bodyOf(frame, x.key != keyAPIVersions && resp.IsFlexible())
	if err != nil {
		return frame, err
	}
	if x.key == keyAPIVersions && refusesVersion(frame[body:]) {
		return frame, nil // in the form of version 0 whatever was asked for; offers nothing
	}
	if err := resp.ReadFrom(frame[body:]); err != nil {
		return frame, fmt.Errorf("%s answer of version %d: %w", kmsg.NameForKey(x.key), x.version, err)
	}
	if !replace(resp, to) {
		return frame, nil
	}
	out := make([]byte, body, len(frame)+64)
	copy(out, frame[:body])
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, nil
}

// bodyOf is where an answer's body begins: after length, correlation id and, in flexible
// versions, tagged fields.
func bodyOf(frame []byte, flexible bool) (int, error) {
	at := 8
	if len(frame) < at {
		return 0, errors.New("answer without a header")
	}
	if !flexible {
		return at, nil
	}
	next := func() uint64 {
		v, n := binary.Uvarint(frame[at:])
		if n <= 0 {
			at = len(frame) + 1
			return 0
		}
		at += n
		return v
	}
	for tags := next(); tags > 0 && at <= len(frame); tags-- {
		next() // the tag
		if at > len(frame) {
			break
		}
		size := next()
		if at > len(frame) || size > uint64(len(frame)-at) {
			at = len(frame) + 1
			break
		}
		at += int(size)
	}
	if at > len(frame) {
		return 0, errors.New("answer whose header's tagged fields do not end")
	}
	return at, nil
}

// refusesVersion says whether an ApiVersions answer is UNSUPPORTED_VERSION.
func refusesVersion(body []byte) bool {
	return len(body) >= 2 && binary.BigEndian.Uint16(body) == 35
}

// replace changes addresses in resp and says whether it changed anything.
func replace(resp kmsg.Response, to front) bool {
	c := changer{to: to}
	switch r := resp.(type) {
	case *kmsg.MetadataResponse:
		for i := range r.Brokers {
			c.change(r.Brokers[i].NodeID, &r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		c.change(r.NodeID, &r.Host, &r.Port)
		for i := range r.Coordinators {
			c.change(r.Coordinators[i].NodeID, &r.Coordinators[i].Host, &r.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range r.Brokers {
			c.change(r.Brokers[i].NodeID, &r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.ProduceResponse:
		for i := range r.Brokers {
			c.change(r.Brokers[i].NodeID, &r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.FetchResponse:
		for i := range r.Brokers {
			c.change(r.Brokers[i].NodeID, &r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.ShareFetchResponse:
		for i := range r.NodeEndpoints {
			c.change(r.NodeEndpoints[i].NodeID, &r.NodeEndpoints[i].Host, &r.NodeEndpoints[i].Port)
		}
	case *kmsg.ShareAcknowledgeResponse:
		for i := range r.NodeEndpoints {
			c.change(r.NodeEndpoints[i].NodeID, &r.NodeEndpoints[i].Host, &r.NodeEndpoints[i].Port)
		}
	case *kmsg.ApiVersionsResponse:
		return capVersions(r)
	}
	return c.changed
}

// changer replaces addresses.
type changer struct {
	to      front
	changed bool
}

func (c *changer) change(node int32, host *string, port *int32) {
	if *host == "" || *port < 1 || *port > 65535 {
		return // none: an answer without a coordinator
	}
	if h, p, ok := c.to(node, *host, *port); ok && (h != *host || p != *port) {
		*host, *port, c.changed = h, p, true
	}
}

// capVersions lowers what a broker offers of the answers that have addresses in them to the
// versions that can be rewritten.
func capVersions(r *kmsg.ApiVersionsResponse) (changed bool) {
	for i := range r.ApiKeys {
		k := &r.ApiKeys[i]
		if _, ok := firstWithAddresses[k.ApiKey]; !ok {
			continue
		}
		if newest := kmsg.ResponseForKey(k.ApiKey).MaxVersion(); k.MaxVersion > newest {
			k.MaxVersion, changed = newest, true
		}
	}
	return changed
}
