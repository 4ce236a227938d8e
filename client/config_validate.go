package client

import (
	"fmt"
	"time"

	"github.com/kbench/kbench/client/record"
)

// Validate reports every problem of the configuration at once, as a *ConfigError, and changes
// nothing.
func (c *Config) Validate() error {
	var p problems
	p.atLeast("channelBufferSize", c.ChannelBufferSize, 0)
	p.atMost("channelBufferSize", c.ChannelBufferSize, 1<<24)
	c.Net.validate(&p)
	c.Metadata.validate(&p)
	c.Producer.validate(&p, c.Net)
	c.Consumer.validate(&p)
	p.positive("admin.timeout", c.Admin.Timeout)
	c.Admin.Retry.validate(&p, "admin.retry")
	if len(p) > 0 {
		return &ConfigError{Problems: p}
	}
	return nil
}

// problems collects what is wrong, by key.
type problems []ConfigProblem

func (p *problems) add(key, format string, a ...any) {
	*p = append(*p, ConfigProblem{Key: key, Text: fmt.Sprintf(format, a...)})
}

func (p *problems) atLeast(key string, v, low int) {
	if v < low {
		p.add(key, "is %d, must be at least %d", v, low)
	}
}

func (p *problems) atMost(key string, v, high int) {
	if v > high {
		p.add(key, "is %d, must be at most %d", v, high)
	}
}

func (p *problems) positive(key string, d time.Duration) {
	if d <= 0 {
		p.add(key, "is %v, must be more than 0", d)
	}
}

func (p *problems) notNegative(key string, d time.Duration) {
	if d < 0 {
		p.add(key, "is %v, must not be negative", d)
	}
}

func (r RetryConfig) validate(p *problems, key string) {
	p.atLeast(key+".max", r.Max, 0)
	p.notNegative(key+".backoff", r.Backoff)
	p.notNegative(key+".maxBackoff", r.MaxBackoff)
}

func (n NetConfig) validate(p *problems) {
	p.atLeast("net.maxOpenRequests", n.MaxOpenRequests, 1)
	p.positive("net.dialTimeout", n.DialTimeout)
	p.notNegative("net.requestTimeout", n.RequestTimeout)
	p.positive("net.readTimeout", n.ReadTimeout)
	p.positive("net.writeTimeout", n.WriteTimeout)
	p.notNegative("net.keepAlive", n.KeepAlive)
	p.atLeast("net.maxResponseBytes", n.MaxResponseBytes, 1024)
	switch n.SASL.Mechanism {
	case "":
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		if n.SASL.User == "" || n.SASL.Password == "" {
			p.add("net.sasl", "%s needs a user and a password", n.SASL.Mechanism)
		}
	case "OAUTHBEARER":
		if n.SASL.Token == nil {
			p.add("net.sasl", "OAUTHBEARER needs a source of tokens")
		}
	default:
		p.add("net.sasl", "mechanism %q is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER", n.SASL.Mechanism)
	}
}

func (m MetadataConfig) validate(p *problems) {
	p.positive("metadata.timeout", m.Timeout)
	m.Retry.validate(p, "metadata.retry")
}

func (c ProducerConfig) validate(p *problems, n NetConfig) {
	p.atLeast("producer.maxMessageBytes", c.MaxMessageBytes, record.HeaderSize+1)
	p.atLeast("producer.maxRequestBytes", c.MaxRequestBytes, c.MaxMessageBytes)
	if _, err := c.RequiredAcks.MarshalText(); err != nil {
		p.add("producer.requiredAcks", "is %d, must be 0, 1 or -1 (all)", int16(c.RequiredAcks))
	}
	p.positive("producer.timeout", c.Timeout)
	p.notNegative("producer.deliveryTimeout", c.DeliveryTimeout)
	c.Retry.validate(p, "producer.retry")
	p.atLeast("producer.flush.messages", c.Flush.Messages, 0)
	p.atLeast("producer.flush.bytes", c.Flush.Bytes, 0)
	p.atLeast("producer.flush.maxMessages", c.Flush.MaxMessages, 0)
	p.notNegative("producer.flush.frequency", c.Flush.Frequency)
	if c.Flush.MaxMessages > 0 && c.Flush.MaxMessages < c.Flush.Messages {
		p.add("producer.flush.maxMessages", "is %d, below producer.flush.messages (%d): a batch could never reach its trigger",
			c.Flush.MaxMessages, c.Flush.Messages)
	}
	p.atLeast("producer.buffer.messages", c.Buffer.Messages, 1)
	p.atMost("producer.buffer.messages", c.Buffer.Messages, maxBufferMessages)
	p.atLeast("producer.buffer.bytes", c.Buffer.Bytes, 0)
	p.atMost("producer.buffer.bytes", c.Buffer.Bytes, maxBufferBytes)
	if _, known := partitioners[c.Partitioner]; c.NewPartitioner == nil && !known {
		p.add("producer.partitioner", "%q is not one of %s", c.Partitioner, partitionerNames())
	}
	if _, err := record.NewCompressor(c.Compression, c.CompressionLevel); err != nil {
		p.add("producer.compressionLevel", "%v", err)
	}
	if c.CheckCompressedSize && c.Compression == record.None {
		p.add("producer.checkCompressedSize", "needs producer.compression, which is none")
	}
	if c.Idempotent {
		c.validateIdempotent(p, n)
	}
	c.Transaction.validate(p, c.Idempotent)
}

func (t TransactionConfig) validate(p *problems, idempotent bool) {
	const longest = 1<<15 - 1 // bytes of a string in the protocol
	p.atMost("producer.transaction.id", len(t.ID), longest)
	if t.Timeout < time.Millisecond || t.Timeout > (1<<31-1)*time.Millisecond {
		p.add("producer.transaction.timeout", "is %v, must be from 1ms to %v", t.Timeout, (1<<31-1)*time.Millisecond)
	}
	if t.ID != "" && !idempotent {
		p.add("producer.transaction.id", "needs producer.idempotent: the cluster takes part of a transaction once and in order only")
	}
}

// validateIdempotent refuses what would break the promise (KIP-98, KIP-185).
func (c ProducerConfig) validateIdempotent(p *problems, n NetConfig) {
	if c.RequiredAcks != AcksAll {
		p.add("producer.idempotent", "needs producer.requiredAcks=all, which is %s", c.RequiredAcks)
	}
	if c.Retry.Max < 1 {
		p.add("producer.idempotent", "needs producer.retry.max of at least 1")
	}
	if n.MaxOpenRequests > 5 {
		p.add("producer.idempotent", "needs net.maxOpenRequests of at most 5, which is %d: brokers remember five batches", n.MaxOpenRequests)
	}
}

func (c ConsumerConfig) validate(p *problems) {
	p.atLeast("consumer.minBytes", c.MinBytes, 0)
	p.atLeast("consumer.maxBytes", c.MaxBytes, 1)
	p.atLeast("consumer.maxPartitionBytes", c.MaxPartitionBytes, 1)
	p.notNegative("consumer.maxWait", c.MaxWait)
	p.atLeast("consumer.queueCapacity", c.QueueCapacity, 1)
	p.atLeast("consumer.maxDecompressed", c.MaxDecompressed, 1)
	p.notNegative("consumer.readBackoffMin", c.ReadBackoffMin)
	p.notNegative("consumer.readBackoffMax", c.ReadBackoffMax)
	if c.OutOfRange != "earliest" && c.OutOfRange != "latest" && c.OutOfRange != "error" {
		p.add("consumer.outOfRange", "%q is not one of earliest, latest, error", c.OutOfRange)
	}
	if c.IsolationLevel != ReadUncommitted && c.IsolationLevel != ReadCommitted {
		p.add("consumer.isolationLevel", "%d is neither read_uncommitted nor read_committed", c.IsolationLevel)
	}
	c.Group.validate(p, "consumer.group.")
}
