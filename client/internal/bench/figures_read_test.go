package bench

// readers are the clients that read as fast as they can; ours batch by batch and message by message.
var readers = []entrant{
	ours("consume"), ours("consume-message"), franz("consume"),
	{"confluent", "consume"}, {"sarama", "consume"}, {"kafkago", "consume"},
}

// reading are the figures about consumers. All check the CRC of every batch.
func reading() []figure {
	return []figure{
		{
			id: "consume-100", title: "reading 100-byte messages, synthetic batches of a megabyte", settings: same(5_000_000, 100),
			metrics: []metric{
				cpuPerMessage(franz("consume"), ours("consume"), 0.40),
				cpuPerMessage(entrant{"kafkago", "consume"}, ours("consume-message"), 0.30),
				{
					key: "allocs/rec", title: "allocations a message", reference: franz("consume"),
					target: target{entrant: ours("consume"), limit: 0.001, absolute: true},
				},
			},
			columns:  []string{"rate", "allocs/rec"},
			entrants: readers,
		},
		{
			id: "consume-kafka-100", title: "reading 100-byte messages from real Kafka, one node; one of the two rates is asked for",
			kafka: true, backlog: true, settings: same(10_000_000, 100),
			metrics: []metric{
				readRate(franz("consume"), 1.3), readRate(ours("consume-bare"), 0.85),
				cpuPerMessage(franz("consume"), entrant{}, 0),
			},
			columns:  []string{"rate", "allocs/rec"},
			entrants: append([]entrant{ours("consume-bare")}, readers...),
		},
		{
			id: "consume-1000-idle", title: "a reader of 1 000 partitions, of which 10 get 2 messages a second each",
			partitions: 1000, trickle: 20, settings: same(300, 100),
			metrics: []metric{
				idleMetric("req/s", "Fetch requests a second", plain, 1.05), // as many as messages: what differs is chance
				idleMetric("cpu/s", "CPU a second", nanoseconds, 1),
			},
			entrants: []entrant{ours("consume-idle"), franz("consume-idle")},
		},
		{
			id: "rebalance-20", title: "a group of 20 members, 100 partitions with 50 messages a second each, when one more joins",
			kafka: true, partitions: 100, settings: rebalanceSettings(),
			metrics: []metric{{
				key: "gap", title: "longest gap between deliveries on partitions that do not move", unit: nanoseconds,
				reference: ours("rebalance-none"), target: target{entrant: ours("rebalance"), limit: 1.5}, // none beyond what there is anyway
			}},
			columns: []string{"moved", "gap/moved"},
			// An eager group shows that a pause would be seen. The peers' program has no mode for this.
			entrants: []entrant{ours("rebalance"), ours("rebalance-none"), ours("rebalance-eager")},
		},
	}
}

// rebalanceSettings are 20 s of messages that leave at once.
func rebalanceSettings() settings {
	s := same(100_000, 100)
	s.Linger = 0
	return s
}

func readRate(reference entrant, limit float64) metric {
	return metric{
		key: "rate", title: "messages a second", unit: perSecond, higher: true,
		reference: reference, target: target{entrant: ours("consume"), limit: limit},
	}
}

func idleMetric(key, title string, u unit, limit float64) metric {
	return metric{
		key: key, title: title, unit: u, reference: franz("consume-idle"),
		target: target{entrant: ours("consume-idle"), limit: limit},
	}
}
