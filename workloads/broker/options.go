package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Limits of what one embedded broker may be asked for.
const (
	maxNodes      = 100
	maxPartitions = 10_000

	maxSyntheticValue = 16 << 20
)

// Segments of the embedded broker's logs. Retention drops whole segments, so that a log holds
// at most Options.RetentionBytes plus two of them.
const segmentBytes = 8 << 20

// DefaultRetentionBytes is what each partition keeps unless Options says otherwise: the
// embedded broker's logs are in memory, and a long run would fill it.
const DefaultRetentionBytes int64 = 64 << 20

// ClusterID is what every embedded broker calls its cluster, so that it is never taken for Kafka.
const ClusterID = "kbench-embedded"

// Options say what the embedded broker looks like. The zero value is one node on a free port
// that stores what is produced and has no topics.
type Options struct {
	// Port of the first node, on the loopback address; node i listens on Port+i. 0: every node
	// takes a free port.
	Port int
	// Nodes is the number of brokers, 1…100; 0 means 1.
	Nodes int
	// Discard drops what is produced (offsets advance, sequences are checked) and answers
	// fetches from one synthetic batch, so that the broker's storage is out of the figures. Its
	// messages bear a stamp of no run's: a run that reads them counts them as someone else's.
	Discard bool
	// SyntheticValueBytes is the size of the values a discarding broker serves; 0 means 100.
	SyntheticValueBytes int
	// AutoCreate lets a metadata request that asks for it create topics, as
	// auto.create.topics.enable does. Off by default: a misspelt topic should be an error.
	AutoCreate bool
	// Topics exist from the start.
	Topics []Topic
	// RetentionBytes bounds what a partition keeps in memory; 0 means DefaultRetentionBytes,
	// -1 everything. It is applied once a second.
	RetentionBytes int64
	// Version makes the broker speak like this release of Kafka ("2.1", "3.9"): it offers no
	// request version that the release did not know. Empty: the newest.
	Version string
	// VersionCaps lower the highest version offered of single requests, by API key; a negative
	// cap removes the request.
	VersionCaps map[int16]int16
	// Config are broker settings by Kafka's own names, those that kfake knows.
	Config map[string]string
	// User and Password, when set, switch on SASL: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512
	// for this one user.
	User, Password string
}

// Topic is a topic that exists from the start.
type Topic struct {
	Name       string
	Partitions int
}

// ParseTopic reads NAME:PARTITIONS, or NAME for one partition.
func ParseTopic(s string) (Topic, error) {
	name, count, given := strings.Cut(s, ":")
	t := Topic{Name: name, Partitions: 1}
	if given {
		n, err := strconv.Atoi(count)
		if err != nil {
			return Topic{}, fmt.Errorf("topic %q: %q is not a number of partitions; write NAME:PARTITIONS, e.g. orders:6", s, count)
		}
		t.Partitions = n
	}
	return t, t.validate()
}

// String is the form that ParseTopic reads.
func (t Topic) String() string { return t.Name + ":" + strconv.Itoa(t.Partitions) }

func (t Topic) validate() error {
	if !validTopicName(t.Name) {
		return fmt.Errorf("topic %q: a name is 1 to 249 letters, digits, '.', '_' or '-', and neither '.' nor '..'", t.Name)
	}
	if t.Partitions < 1 || t.Partitions > maxPartitions {
		return fmt.Errorf("topic %q: %d partitions; possible are 1 to %d", t.Name, t.Partitions, maxPartitions)
	}
	return nil
}

// validTopicName follows Kafka's own rule (org.apache.kafka.common.internals.Topic).
func validTopicName(name string) bool {
	if name == "" || len(name) > 249 || name == "." || name == ".." {
		return false
	}
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Validate reports every problem at once and changes nothing.
func (o Options) Validate() error {
	var problems []error
	nodes := max(o.Nodes, 1)
	if o.Nodes < 0 || o.Nodes > maxNodes {
		problems = append(problems, fmt.Errorf("nodes: %d; possible are 1 to %d", o.Nodes, maxNodes))
	} else if o.Port < 0 || o.Port+nodes-1 > 65535 {
		problems = append(problems, fmt.Errorf("port: %d nodes from port %d on do not fit in 1 to 65535; 0 takes free ports", nodes, o.Port))
	}
	if o.RetentionBytes < -1 {
		problems = append(problems, fmt.Errorf("retention: %d bytes; possible are -1 (keep everything), 0 (the default) or more", o.RetentionBytes))
	}
	if o.Version != "" && kversion.FromString(o.Version) == nil {
		problems = append(problems, fmt.Errorf("version: %q is no known release of Kafka; write e.g. 2.1 or 3.9", o.Version))
	}
	if o.SyntheticValueBytes < 0 || o.SyntheticValueBytes > maxSyntheticValue {
		problems = append(problems, fmt.Errorf("synthetic values: %d bytes; possible are 0 (100) to %d", o.SyntheticValueBytes, maxSyntheticValue))
	}
	if (o.User == "") != (o.Password == "") {
		problems = append(problems, errors.New("user and password go together"))
	}
	for _, t := range o.Topics {
		if err := t.validate(); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// AddFlags adds the flags of `kbench broker` that set o, whose present values are the defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Port, "port", o.Port, "port of the first node; node i listens on PORT+i; 0 takes free ports")
	fs.IntVar(&o.Nodes, "nodes", max(o.Nodes, 1), "number of brokers in the cluster")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "drop what is produced, serve synthetic batches to who fetches")
	fs.Var((*topicList)(&o.Topics), "topics", "topics that exist from the start, as NAME:PARTITIONS; may be repeated or separated by commas")
	fs.BoolVar(&o.AutoCreate, "auto-create", o.AutoCreate, "create topics that a client asks for (auto.create.topics.enable)")
	fs.Int64Var(&o.RetentionBytes, "retention", DefaultRetentionBytes, "bytes of messages that each partition keeps in memory; -1 keeps everything")
	fs.StringVar(&o.Version, "kafka-version", o.Version, "speak like this release of Kafka, e.g. 2.1 or 3.9 (default the newest)")
}

// Args are the arguments that, read by the flags of AddFlags, give o again. Only what those
// flags cover is kept.
func (o Options) Args() []string {
	args := []string{"--port", strconv.Itoa(o.Port), "--nodes", strconv.Itoa(max(o.Nodes, 1))}
	if o.Discard {
		args = append(args, "--discard")
	}
	if o.AutoCreate {
		args = append(args, "--auto-create")
	}
	if o.RetentionBytes != 0 {
		args = append(args, "--retention", strconv.FormatInt(o.RetentionBytes, 10))
	}
	if o.Version != "" {
		args = append(args, "--kafka-version", o.Version)
	}
	for _, t := range o.Topics {
		args = append(args, "--topics", t.String())
	}
	return args
}

// topicList is the flag value of --topics.
type topicList []Topic

func (l *topicList) String() string {
	names := make([]string, len(*l))
	for i, t := range *l {
		names[i] = t.String()
	}
	return strings.Join(names, ",")
}

func (l *topicList) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		t, err := ParseTopic(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		*l = append(*l, t)
	}
	return nil
}

func (*topicList) Type() string { return "NAME:PARTITIONS" }

// kfakeOptions translates o, which must be valid.
func (o Options) kfakeOptions() []kfake.Opt {
	config := map[string]string{"log.segment.bytes": strconv.Itoa(segmentBytes)}
	if keep := o.retention(); keep >= 0 {
		config["log.retention.bytes"] = strconv.FormatInt(keep, 10)
	}
	for k, v := range o.Config {
		config[k] = v
	}
	opts := []kfake.Opt{kfake.NumBrokers(max(o.Nodes, 1)), kfake.ClusterID(ClusterID), kfake.BrokerConfigs(config)}
	if o.Port > 0 {
		ports := make([]int, max(o.Nodes, 1))
		for i := range ports {
			ports[i] = o.Port + i
		}
		opts = append(opts, kfake.Ports(ports...))
	}
	if o.Discard {
		opts = append(opts, kfake.BlackholeProduce(),
			kfake.SyntheticFetch(kfake.SyntheticBatch{Batch: syntheticBatch(o.SyntheticValueBytes)}))
	}
	if o.AutoCreate {
		opts = append(opts, kfake.AllowAutoTopicCreation())
	}
	for _, t := range o.Topics {
		opts = append(opts, kfake.SeedTopics(int32(t.Partitions), t.Name))
	}
	if o.User != "" {
		opts = append(opts, kfake.EnableSASL())
		for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
			opts = append(opts, kfake.Superuser(mechanism, o.User, o.Password))
		}
	}
	if v := o.versions(); v != nil {
		opts = append(opts, kfake.MaxVersions(v))
	}
	return opts
}

func (o Options) retention() int64 {
	if o.RetentionBytes == 0 {
		return DefaultRetentionBytes
	}
	return o.RetentionBytes
}

// versions is nil when nothing is capped.
func (o Options) versions() *kversion.Versions {
	if o.Version == "" && len(o.VersionCaps) == 0 {
		return nil
	}
	v := kversion.Tip()
	if o.Version != "" {
		v = kversion.FromString(o.Version)
	}
	for key, cap := range o.VersionCaps {
		v.SetMaxKeyVersion(key, cap)
	}
	return v
}
