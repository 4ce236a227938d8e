package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/kbench/kbench/client/record"
)

// Config holds every setting of a Client and of the producers and readers made from it.
//
// NewConfig returns one with every default in place; the zero value is refused by Validate. A
// Config is read when a client, producer or reader is made and never changed by this package:
// change it freely afterwards, nothing made earlier notices. The key tags are the keys of YAML
// files and of --set (see package settings), the doc tags are their documentation.
type Config struct {
	ClientID          string  `key:"clientID" doc:"Name sent with every request; brokers log it and apply quotas to it."`
	ChannelBufferSize int     `key:"channelBufferSize" unit:"messages" doc:"Bound of each queue of the pipeline (into a topic producer, into a partition producer) and of each channel (Input, Successes and Errors, the batch producer's Results). 0: a stage holds only the message it is handling, a channel none."`
	Version           Version `key:"version" doc:"Newest Kafka release whose request versions may be used, e.g. 2.8. Empty: the newest both sides know."`

	Net      NetConfig      `key:"net"`
	Metadata MetadataConfig `key:"metadata"`
	Producer ProducerConfig `key:"producer"`
	Consumer ConsumerConfig `key:"consumer"`
	Admin    AdminConfig    `key:"admin"`

	// Logger receives what the client has to say about connections, retries and refreshes. Nil:
	// silent. It is never called per message.
	Logger *slog.Logger `key:"-"`
}

// NetConfig are the settings of broker connections.
type NetConfig struct {
	MaxOpenRequests  int           `key:"maxOpenRequests" unit:"requests" doc:"Requests in flight on one connection. With an idempotent producer at most 5. Without idempotence a batch that is sent again may come behind later ones of its partition unless this is 1."`
	DialTimeout      time.Duration `key:"dialTimeout" doc:"Longest time to open a connection: TCP, TLS, version negotiation and authentication together."`
	RequestTimeout   time.Duration `key:"requestTimeout" doc:"Longest wait for the answer to a request, beyond what the request itself lets the broker wait. The connection is given up when it passes. 0: as readTimeout."`
	ReadTimeout      time.Duration `key:"readTimeout" doc:"Longest time for the rest of an answer once it has begun to arrive. The connection is given up when it passes."`
	WriteTimeout     time.Duration `key:"writeTimeout" doc:"Longest time to write one request."`
	KeepAlive        time.Duration `key:"keepAlive" doc:"Interval of TCP keep-alive probes; 0: the system's default."`
	MaxResponseBytes int           `key:"maxResponseBytes" unit:"bytes" doc:"Largest answer accepted; a longer one closes the connection before memory is taken for it."`

	// TLS, when not nil, is used for every connection; an empty ServerName is filled in from the
	// broker's address.
	TLS *tls.Config `key:"-"`
	// SASL says how to authenticate; the zero value does not.
	SASL SASLConfig `key:"-"`
	// Dialer opens the TCP connections. Nil: a net.Dialer.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error) `key:"-"`
}

// SASLConfig says how to authenticate. Secrets stand nowhere else, and are never printed.
type SASLConfig struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty for none.
	Mechanism string
	User      string
	Password  string
	// Token returns a bearer token; OAUTHBEARER asks for a new one at every authentication. It must
	// obey its context, and is called from several goroutines.
	Token func(ctx context.Context) (string, error)
	// Extensions go with the token (KIP-342); nil for none.
	Extensions map[string]string
}

// MetadataConfig says how the client learns of brokers, topics and leaders.
type MetadataConfig struct {
	RefreshFrequency       time.Duration `key:"refreshFrequency" doc:"How often metadata is refreshed without a cause. 0 or -1: never, only when something failed or is not known yet."`
	Full                   bool          `key:"full" doc:"Refresh every topic of the cluster instead of the topics in use."`
	Timeout                time.Duration `key:"timeout" doc:"Longest time for one refresh with all its retries, and how long brokers may say that a partition is not there before a reader, or a commit, gives it up."`
	AllowAutoTopicCreation bool          `key:"allowAutoTopicCreation" doc:"Let brokers make topics that are asked for and missing, where they are set up to."`
	Retry                  RetryConfig   `key:"retry"`
}

// RetryConfig says how often and how fast something is tried again.
type RetryConfig struct {
	Max        int           `key:"max" unit:"attempts" doc:"Attempts after the first."`
	Backoff    time.Duration `key:"backoff" doc:"Wait before the second attempt; it doubles with each further one, up to maxBackoff."`
	MaxBackoff time.Duration `key:"maxBackoff" doc:"Longest wait between two attempts."`

	// BackoffFunc, when set, gives the wait before the given attempt (1 is the first retry)
	// instead of Backoff and MaxBackoff. It must not block: a producer asks it on the goroutine that
	// reads the broker's answers, where what waits for outcomes is ErrInCallback.
	BackoffFunc func(attempt int) time.Duration `key:"-"`
}

// ProducerConfig are the settings of producers.
type ProducerConfig struct {
	MaxMessageBytes int `key:"maxMessageBytes" unit:"bytes" doc:"Largest message, and largest batch before compression. A larger message fails by itself."`
	// CheckCompressedSize lets a message through that only compression brings under
	// MaxMessageBytes. It costs compressing a message only to find out that it is too large.
	CheckCompressedSize bool `key:"checkCompressedSize" doc:"Hold maxMessageBytes against messages after compression instead of before: a larger message that compresses well enough is sent, in a batch of its own."`

	MaxRequestBytes  int           `key:"maxRequestBytes" unit:"bytes" doc:"Largest Produce request: the batches of several partitions together."`
	RequiredAcks     RequiredAcks  `key:"requiredAcks" doc:"Who must have a message before it counts as sent: 0 or none (nobody: written to the socket), 1 or leader, -1 or all (every in-sync replica)."`
	Timeout          time.Duration `key:"timeout" doc:"How long a broker may wait for the replicas that requiredAcks asks for."`
	DeliveryTimeout  time.Duration `key:"deliveryTimeout" doc:"From acceptance to outcome, all retries included; a message without one by then fails. 0: no bound but retry.max."`
	Partitioner      string        `key:"partitioner" enum:"hash,roundrobin,random,manual,sticky,classic,murmur2,crc32,fnv1a" doc:"How a message finds its partition. hash: FNV-1a of the key as in Sarama, and without a key one partition per batch. classic: the same with a key, and without one a partition that stays until the next refresh of metadata."`
	Compression      record.Codec  `key:"compression" doc:"Codec of batches: none, gzip, snappy, lz4 or zstd."`
	CompressionLevel int           `key:"compressionLevel" doc:"Level of the codec: gzip 0 to 9, lz4 0 to 9, zstd 1 to 22. -1000: the codec's default."`
	Idempotent       bool          `key:"idempotent" doc:"Exactly once and in order per partition, for the life of the producer. false: a batch whose answer is lost is sent again and may be in the log twice, and behind later ones where net.maxOpenRequests is above 1."`
	Retry            RetryConfig   `key:"retry"`
	Flush            FlushConfig   `key:"flush"`
	Buffer           BufferConfig  `key:"buffer"`
	Return           ReturnConfig  `key:"return"`
	Batch            BatchConfig   `key:"batch"`

	Transaction TransactionConfig `key:"transaction"`

	// NewPartitioner, when set, makes the partitioner of each topic instead of Partitioner.
	NewPartitioner func(topic string) Partitioner `key:"-"`
	// Interceptors see every message, in order, before it is partitioned.
	Interceptors []ProducerInterceptor `key:"-"`
	// OnRequest, when set, is told of every finished Produce request, from the connection's
	// reading goroutine: it must not block.
	OnRequest func(RequestInfo) `key:"-"`
}

// TransactionConfig makes a producer transactional.
type TransactionConfig struct {
	ID      string        `key:"id" doc:"Name of the transactional producer, the same after a restart; one that begins with it ends every other. Empty: no transactions."`
	Timeout time.Duration `key:"timeout" doc:"How long a transaction may be open before the cluster aborts it; at most the brokers' transaction.max.timeout.ms."`
}

// id is what Produce requests carry.
func (t *TransactionConfig) id() *string {
	if t.ID == "" {
		return nil
	}
	return &t.ID
}

// FlushConfig says when a broker's collected messages are sent: when any of the triggers that
// are set fires, or, with none set, as soon as the connection can take a request.
type FlushConfig struct {
	Messages    int           `key:"messages" unit:"messages" doc:"Send when a broker's batches hold this many messages. 0: not a trigger."`
	Bytes       int           `key:"bytes" unit:"bytes" doc:"Send when a broker's batches hold this many bytes. 0: not a trigger."`
	Frequency   time.Duration `key:"frequency" doc:"Send when the oldest message waiting is this old. 0: not a trigger."`
	MaxMessages int           `key:"maxMessages" unit:"messages" doc:"Most messages in one batch. 0: as many as fit maxMessageBytes."`
}

// BufferConfig bounds what a producer holds from acceptance to outcome, over all partitions.
type BufferConfig struct {
	Messages int `key:"messages" unit:"messages" doc:"Most messages accepted and not decided (in the channel form: not read)."`
	Bytes    int `key:"bytes" unit:"bytes" doc:"Most key and value bytes accepted and not decided. 0: no bound of its own."`
}

// ReturnConfig says which outcomes an AsyncProducer's channels deliver. A channel that is on
// must be read, or Input blocks once the bounds are full.
type ReturnConfig struct {
	Successes bool `key:"successes" doc:"Deliver messages that were acknowledged on Successes."`
	Errors    bool `key:"errors" doc:"Deliver messages that failed on Errors."`
}

// BatchConfig are the settings of the BatchProducer beside those it shares with other producers.
type BatchConfig struct {
	Async bool `key:"async" doc:"The batch producer's mode. false: Send returns when the brokers have answered. true: Send queues, up to producer.buffer, and what is queued is sent as producer.flush says."`

	// Keys and Values make bytes of keys and values. Nil: DefaultEncoder.
	Keys, Values Encoder `key:"-"`
	// OnResults, when set, is told of every outcome, in runs of messages that were decided
	// together: see BatchDeliveries.
	OnResults BatchDeliveries `key:"-"`
}

// ConsumerConfig are the settings of readers.
type ConsumerConfig struct {
	MinBytes          int            `key:"minBytes" unit:"bytes" doc:"A broker answers a Fetch when it has this much, or after maxWait."`
	MaxBytes          int            `key:"maxBytes" unit:"bytes" doc:"Most bytes in one Fetch answer. A first batch that is larger arrives whole all the same."`
	MaxPartitionBytes int            `key:"maxPartitionBytes" unit:"bytes" doc:"Most bytes of one partition in one Fetch answer."`
	MaxWait           time.Duration  `key:"maxWait" doc:"How long a broker may wait for minBytes."`
	QueueCapacity     int            `key:"queueCapacity" unit:"batches" doc:"Fetched and not yet delivered batches that a reader holds before it stops fetching."`
	IsolationLevel    IsolationLevel `key:"isolationLevel" doc:"read_uncommitted, or read_committed to hide what transactions have not committed."`
	OutOfRange        string         `key:"outOfRange" enum:"earliest,latest,error" doc:"Where to go on when the position is no longer, or not yet, in the log."`
	CheckCRC          bool           `key:"checkCrc" doc:"Check the checksum of every batch received."`
	MaxDecompressed   int            `key:"maxDecompressed" unit:"bytes" doc:"Largest batch after decompression; a larger one is refused before memory is taken for it."`
	ReadBackoffMin    time.Duration  `key:"readBackoffMin" doc:"First wait after a failed Fetch; it doubles up to readBackoffMax."`
	ReadBackoffMax    time.Duration  `key:"readBackoffMax" doc:"Longest wait after a failed Fetch."`
	Rack              string         `key:"rack" doc:"Where this client runs; brokers may name a closer replica to read from (KIP-392)."`

	Group GroupConfig `key:"group"`
}

// AdminConfig are the settings of administrative requests.
type AdminConfig struct {
	Timeout time.Duration `key:"timeout" doc:"Longest time for one administrative request with all its retries."`
	Retry   RetryConfig   `key:"retry"`
}

// NewConfig returns a Config with every default in place.
func NewConfig() *Config {
	c := &Config{ClientID: "kbench", ChannelBufferSize: 256}
	c.Net = NetConfig{
		MaxOpenRequests: 5, DialTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, MaxResponseBytes: 128 << 20,
	}
	c.Metadata = MetadataConfig{
		RefreshFrequency: 10 * time.Minute, Timeout: 30 * time.Second,
		Retry: RetryConfig{Max: 5, Backoff: 100 * time.Millisecond, MaxBackoff: time.Second},
	}
	c.Producer = ProducerConfig{
		MaxMessageBytes: 1_000_000, MaxRequestBytes: 100 << 20, RequiredAcks: AcksAll,
		Timeout: 10 * time.Second, DeliveryTimeout: 2 * time.Minute, Partitioner: "hash",
		CompressionLevel: record.DefaultLevel,
		Retry:            RetryConfig{Max: 1<<31 - 1, Backoff: 100 * time.Millisecond, MaxBackoff: time.Second},
		Buffer:           BufferConfig{Messages: 250_000, Bytes: 64 << 20},
		Return:           ReturnConfig{Errors: true},
	}
	c.Producer.Transaction.Timeout = time.Minute
	c.Consumer = ConsumerConfig{
		MinBytes: 1, MaxBytes: 50 << 20, MaxPartitionBytes: 1 << 20, MaxWait: 500 * time.Millisecond,
		QueueCapacity: 100, OutOfRange: "error", CheckCRC: true, MaxDecompressed: 256 << 20,
		ReadBackoffMin: 100 * time.Millisecond, ReadBackoffMax: time.Second,
		Group: defaultGroupConfig(),
	}
	c.Admin = AdminConfig{
		Timeout: 30 * time.Second,
		Retry:   RetryConfig{Max: 10, Backoff: 100 * time.Millisecond, MaxBackoff: time.Second},
	}
	return c
}
