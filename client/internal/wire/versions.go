package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Range is an inclusive range of request versions.
type Range struct{ Min, Max int16 }

func (r Range) String() string {
	if r.Min == r.Max {
		return fmt.Sprintf("%d", r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

// Versions holds, for every request that we send, the versions that we speak. The minimum is
// never one that Kafka 4 dropped (KIP-896), the maximum never below what Kafka 2.1 offers.
// Maxima stop where a next version would ask for something that we do not do, which the comment
// beside them says; other maxima are the newest that our protocol definitions have.
var Versions = map[int16]Range{
	keyOf[kmsg.ProduceRequest]():                    {3, 12}, // 13 names topics by id only
	keyOf[kmsg.FetchRequest]():                      {4, 18}, // from 13 on topics are named by id only
	keyOf[kmsg.ListOffsetsRequest]():                {1, 10}, // 11 is about tiered storage
	keyOf[kmsg.MetadataRequest]():                   {4, 13}, // 4 says whether topics may be created
	keyOf[kmsg.OffsetCommitRequest]():               {2, 9},  // 10 names topics by id only
	keyOf[kmsg.OffsetFetchRequest]():                {1, 9},  // 10 names topics by id only
	keyOf[kmsg.FindCoordinatorRequest]():            {1, 5},  // 1 has transactions; 6 is for share groups
	keyOf[kmsg.JoinGroupRequest]():                  {2, 9},
	keyOf[kmsg.HeartbeatRequest]():                  {0, 4},
	keyOf[kmsg.LeaveGroupRequest]():                 {0, 5},
	keyOf[kmsg.SyncGroupRequest]():                  {0, 5},
	keyOf[kmsg.DescribeGroupsRequest]():             {0, 6},
	keyOf[kmsg.ListGroupsRequest]():                 {0, 5},
	keyOf[kmsg.SASLHandshakeRequest]():              {1, 1}, // 0 is followed by bytes outside the protocol
	keyOf[kmsg.ApiVersionsRequest]():                {0, 4}, // 5 names the node that is expected
	keyOf[kmsg.CreateTopicsRequest]():               {2, 7},
	keyOf[kmsg.DeleteTopicsRequest]():               {1, 5}, // 6 has another shape, for deleting by id
	keyOf[kmsg.DeleteRecordsRequest]():              {0, 2},
	keyOf[kmsg.InitProducerIDRequest]():             {0, 5},
	keyOf[kmsg.OffsetForLeaderEpochRequest]():       {2, 4},
	keyOf[kmsg.AddPartitionsToTxnRequest]():         {0, 3}, // 4 is between brokers
	keyOf[kmsg.AddOffsetsToTxnRequest]():            {0, 4},
	keyOf[kmsg.EndTxnRequest]():                     {0, 5},
	keyOf[kmsg.TxnOffsetCommitRequest]():            {0, 5}, // 6 names topics by id only
	keyOf[kmsg.DescribeConfigsRequest]():            {1, 4},
	keyOf[kmsg.AlterConfigsRequest]():               {0, 2},
	keyOf[kmsg.DescribeLogDirsRequest]():            {1, 4},
	keyOf[kmsg.SASLAuthenticateRequest]():           {0, 2},
	keyOf[kmsg.CreatePartitionsRequest]():           {0, 3},
	keyOf[kmsg.DeleteGroupsRequest]():               {0, 2},
	keyOf[kmsg.ElectLeadersRequest]():               {0, 2},
	keyOf[kmsg.IncrementalAlterConfigsRequest]():    {0, 1},
	keyOf[kmsg.AlterPartitionAssignmentsRequest]():  {0, 1},
	keyOf[kmsg.ListPartitionReassignmentsRequest](): {0, 0},
	keyOf[kmsg.OffsetDeleteRequest]():               {0, 0},
	keyOf[kmsg.DescribeClusterRequest]():            {0, 1},
	keyOf[kmsg.DescribeProducersRequest]():          {0, 0},
	keyOf[kmsg.ConsumerGroupHeartbeatRequest]():     {1, 1}, // 0 was a preview, without patterns
	keyOf[kmsg.ConsumerGroupDescribeRequest]():      {0, 1},
}

// The last versions that belong to transactions v1: a transactional producer on a cluster whose
// feature transaction.version is below 2 must stay at or below them (KIP-890).
const (
	LastProduceTxnV1         = 11
	LastEndTxnTxnV1          = 4
	LastTxnOffsetCommitTxnV1 = 4
)

// keyOf is the key of a request type.
func keyOf[T any, P interface {
	*T
	kmsg.Request
}]() int16 {
	return P(new(T)).Key()
}

// dropped holds the highest version of each request that Kafka 4.0 no longer takes (KIP-896); of
// Produce those that it advertises, for the sake of old clients, and refuses (KAFKA-18659). Keys
// are listed whether we send them or not.
var dropped = map[int16]int16{
	0: 2, 1: 3, 2: 0, 8: 1, 9: 0, 11: 1, 17: 0, 19: 1, 20: 0, 23: 1, 27: 0, 29: 0, 30: 0, 31: 0,
	32: 0, 34: 0, 35: 0, 38: 0, 39: 0, 40: 0, 41: 0,
}

// Dropped says whether Kafka 4 refuses a version of a request that earlier releases took.
func Dropped(key, version int16) bool {
	last, some := dropped[key]
	return some && version <= last
}

// VersionError says that no version of a request is spoken by both sides.
type VersionError struct {
	Addr   string // the broker; may be empty
	Key    int16
	Ours   Range
	Broker *Range // nil: the broker does not know the request at all
	Cap    *int16 // the user's cap from the Version setting, where there is one
}

func (e *VersionError) Error() string {
	who := "the broker"
	if e.Addr != "" {
		who = "broker " + e.Addr
	}
	name := kmsg.NameForKey(e.Key)
	switch {
	case e.Broker == nil:
		return fmt.Sprintf("%s does not know %s requests (we speak versions %v): the broker is too old or does not serve this feature", who, name, e.Ours)
	case e.Cap != nil && min(e.Ours.Max, e.Broker.Max) >= max(e.Ours.Min, e.Broker.Min):
		return fmt.Sprintf("the Version setting caps %s at version %d, but we speak %v and %s speaks %v: raise or remove Version", name, *e.Cap, e.Ours, who, *e.Broker)
	case e.Ours.Max < e.Broker.Min:
		return fmt.Sprintf("no common version of %s: we speak %v, %s speaks %v: the broker is too new for this client", name, e.Ours, who, *e.Broker)
	}
	return fmt.Sprintf("no common version of %s: we speak %v, %s speaks %v: the broker is too old, Kafka 2.1 is the oldest that is supported", name, e.Ours, who, *e.Broker)
}

// Class makes Classify answer Fatal: another try meets the same versions. Nothing was sent.
func (e *VersionError) Class() Class { return Fatal | DefinitelyRefused }

// Negotiate picks the highest version common to ours, the broker's range (nil: the broker does
// not know the request) and the user's cap (nil: none). What a broker advertises as its lowest
// version is never taken for more than a bound: Kafka 4 advertises Produce 0 and refuses it.
func Negotiate(key int16, broker *Range, limit *int16) (int16, error) {
	ours, ok := Versions[key]
	if !ok {
		return 0, fmt.Errorf("request key %d (%s) is not in the table of versions", key, kmsg.NameForKey(key))
	}
	fail := &VersionError{Key: key, Ours: ours, Broker: broker, Cap: limit}
	if broker == nil {
		return 0, fail
	}
	v := min(ours.Max, broker.Max)
	if limit != nil {
		v = min(v, *limit)
	}
	if v < max(ours.Min, broker.Min) || Dropped(key, v) {
		return 0, fail
	}
	return v, nil
}

// flexibleFrom holds the first flexible version (KIP-482) by request key; a key that it does not
// hold has none.
var flexibleFrom = firstFlexible()

const maxKey = 100

func firstFlexible() (from [maxKey]int16) {
	for key := range from {
		from[key] = 1<<15 - 1
		req := kmsg.RequestForKey(int16(key))
		if req == nil {
			continue
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			if req.SetVersion(v); req.IsFlexible() {
				from[key] = v
				break
			}
		}
	}
	return from
}

// Flexible says whether a version of a request is flexible: its header then is v2, and that of
// its response v1, except for ApiVersions, whose response header always is v0 (KIP-511).
func Flexible(key, version int16) bool {
	return key >= 0 && key < maxKey && version >= flexibleFrom[key]
}

// FlexibleResponseHeader says whether the response's header ends with tagged fields.
func FlexibleResponseHeader(key, version int16) bool {
	return key != keyAPIVersions && Flexible(key, version)
}

const keyAPIVersions = 18
