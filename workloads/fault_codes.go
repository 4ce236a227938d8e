package workloads

import (
	"maps"
	"slices"
)

// faultRequests are the requests that a fault can have answered with an error, by Kafka's names.
var faultRequests = map[string]int16{
	"Produce": 0, "Fetch": 1, "ListOffsets": 2, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9,
	"FindCoordinator": 10, "JoinGroup": 11, "Heartbeat": 12, "SyncGroup": 14, "InitProducerId": 22,
}

// faultCodes are the errors that brokers answer these with, by Kafka's names.
var faultCodes = map[string]int16{
	"UNKNOWN_SERVER_ERROR": -1, "OFFSET_OUT_OF_RANGE": 1, "CORRUPT_MESSAGE": 2, "UNKNOWN_TOPIC_OR_PARTITION": 3,
	"LEADER_NOT_AVAILABLE": 5, "NOT_LEADER_OR_FOLLOWER": 6, "REQUEST_TIMED_OUT": 7, "BROKER_NOT_AVAILABLE": 8,
	"REPLICA_NOT_AVAILABLE": 9, "MESSAGE_TOO_LARGE": 10, "NETWORK_EXCEPTION": 13, "COORDINATOR_LOAD_IN_PROGRESS": 14,
	"COORDINATOR_NOT_AVAILABLE": 15, "NOT_COORDINATOR": 16, "INVALID_TOPIC_EXCEPTION": 17, "RECORD_LIST_TOO_LARGE": 18,
	"NOT_ENOUGH_REPLICAS": 19, "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20, "ILLEGAL_GENERATION": 22, "UNKNOWN_MEMBER_ID": 25,
	"REBALANCE_IN_PROGRESS": 27, "TOPIC_AUTHORIZATION_FAILED": 29, "GROUP_AUTHORIZATION_FAILED": 30, "POLICY_VIOLATION": 44,
	"OUT_OF_ORDER_SEQUENCE_NUMBER": 45, "KAFKA_STORAGE_ERROR": 56, "FENCED_LEADER_EPOCH": 74, "UNKNOWN_LEADER_EPOCH": 75,
	"INVALID_RECORD": 87, "THROTTLING_QUOTA_EXCEEDED": 89,
}

// FaultRequests are the names of the requests that a fault can have answered with an error.
func FaultRequests() []string { return slices.Sorted(maps.Keys(faultRequests)) }

// FaultCodes are the names of the errors a fault can have requests answered with.
func FaultCodes() []string { return slices.Sorted(maps.Keys(faultCodes)) }

// Numbers are the API key and the error code of a FaultError.
func (f Fault) Numbers() (key, code int16) { return faultRequests[f.Request], faultCodes[f.Code] }
