// Package client is a Kafka client: producers, a reader of partitions and consumer groups, and the
// little administration that benchmarks need. It speaks to Kafka 2.1 and later.
//
// A [Client] knows the cluster. Producers and readers are made from addresses, with a client of
// their own, or share one: [NewAsyncProducer] sends in the background, by callbacks
// ([AsyncProducer.Produce]), in runs ([AsyncProducer.ProduceRun], the fastest way) or over
// channels ([AsyncProducer.Input]); [NewSyncProducer] waits for outcomes; both are idempotent with
// Producer.Idempotent, and transactional with Producer.Transaction.ID
// ([AsyncProducer.BeginTransaction]). [NewBatchProducer] sends lists of messages of any type, one
// request a broker. [NewReader] reads partitions from an offset of the application's own, or, with a
// GroupID, as a member of a consumer group, whose offsets it commits ([Reader.CommitMessages]).
// [Config] holds every setting, with the keys that YAML files and command lines use for it.
//
// Errors are values: sentinels such as [ErrOutcomeUnknown] for errors.Is, types such as
// [MessageTooLargeError] and [KafkaError] for errors.As.
package client
