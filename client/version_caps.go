package client

// step is the highest version of a request that a release, and those after it, offer.
type step struct {
	major, minor int
	max          int16
}

// releases says, per request key, which release brought which version, of the requests this
// client sends. From the message definitions of Apache Kafka's releases; only steps at or after
// 2.1, the oldest release spoken to, matter.
var releases = map[int16][]step{
	0:  {{2, 1, 7}, {2, 4, 8}, {2, 8, 9}, {3, 7, 10}, {3, 8, 11}, {4, 0, 12}, {4, 1, 13}},    // Produce
	1:  {{2, 1, 10}, {2, 3, 11}, {2, 7, 12}, {3, 1, 13}, {3, 5, 15}, {3, 7, 16}, {3, 9, 17}}, // Fetch
	2:  {{2, 1, 4}, {2, 2, 5}, {2, 8, 6}, {3, 0, 7}, {3, 5, 8}, {3, 9, 9}, {4, 0, 10}},       // ListOffsets
	3:  {{2, 1, 7}, {2, 3, 8}, {2, 4, 9}, {2, 8, 11}, {3, 1, 12}, {4, 0, 13}},                // Metadata
	8:  {{2, 1, 6}, {2, 3, 7}, {2, 4, 8}, {3, 7, 9}},                                         // OffsetCommit
	9:  {{2, 1, 5}, {2, 4, 6}, {2, 5, 7}, {3, 0, 8}, {3, 7, 9}},                              // OffsetFetch
	10: {{2, 1, 2}, {2, 4, 3}, {3, 0, 4}, {3, 8, 5}, {3, 9, 6}},                              // FindCoordinator
	11: {{2, 1, 3}, {2, 2, 4}, {2, 3, 5}, {2, 4, 6}, {2, 5, 7}, {3, 2, 9}},                   // JoinGroup
	12: {{2, 1, 2}, {2, 3, 3}, {2, 4, 4}},                                                    // Heartbeat
	13: {{2, 1, 2}, {2, 4, 4}, {3, 2, 5}},                                                    // LeaveGroup
	14: {{2, 1, 2}, {2, 3, 3}, {2, 4, 4}, {2, 5, 5}},                                         // SyncGroup
	19: {{2, 1, 3}, {2, 4, 5}, {2, 7, 6}, {2, 8, 7}},                                         // CreateTopics
	20: {{2, 1, 3}, {2, 4, 4}, {2, 7, 5}, {2, 8, 6}},                                         // DeleteTopics
	22: {{2, 1, 1}, {2, 4, 2}, {2, 5, 3}, {2, 7, 4}, {3, 8, 5}},                              // InitProducerId
	23: {{2, 1, 2}, {2, 3, 3}, {2, 8, 4}},                                                    // OffsetForLeaderEpoch
	24: {{2, 1, 1}, {2, 7, 2}, {2, 8, 3}, {3, 6, 4}, {3, 8, 5}},                              // AddPartitionsToTxn
	25: {{2, 1, 1}, {2, 7, 2}, {2, 8, 3}, {3, 8, 4}},                                         // AddOffsetsToTxn
	26: {{2, 1, 1}, {2, 7, 2}, {2, 8, 3}, {3, 8, 4}, {4, 0, 5}},                              // EndTxn
	28: {{2, 1, 2}, {2, 5, 3}, {3, 8, 4}, {4, 0, 5}},                                         // TxnOffsetCommit
	32: {{2, 1, 2}, {2, 6, 3}, {2, 8, 4}},                                                    // DescribeConfigs
	37: {{2, 1, 1}, {2, 5, 2}, {2, 7, 3}},                                                    // CreatePartitions
	43: {{2, 2, 0}, {2, 4, 2}},                                                               // ElectLeaders
	60: {{2, 8, 0}, {3, 7, 1}, {4, 0, 2}},                                                    // DescribeCluster
	68: {{3, 7, 0}, {4, 0, 1}},                                                               // ConsumerGroupHeartbeat
}

// caps is the highest version of a request key that the release v offers; capped is false when
// v does not cap or the key is not in the table.
func (v Version) caps(key int16) (maxVersion int16, capped bool) {
	steps, known := releases[key]
	if v == (Version{}) || !known {
		return 0, false
	}
	maxVersion = -1
	for _, s := range steps {
		if !v.before(s.major, s.minor) {
			maxVersion = s.max
		}
	}
	return maxVersion, true
}
