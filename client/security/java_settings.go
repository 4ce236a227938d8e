package security

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// Role is what a client is that settings are for.
type Role int

// The roles; a program that does both has both.
const (
	Producing Role = 1 << iota
	Consuming
)

// Property is a setting of Kafka's Java clients, as given.
type Property struct {
	Name, Value string
	// File and Line say where; of a flag, File is the flag.
	File string
	Line int
	// Lenient properties are of a file that several programs share: those of another role, and those
	// that change no load, are passed over as Java does, with a warning.
	Lenient bool
}

func (p Property) problem(format string, a ...any) settings.Problem {
	out := settings.Problem{File: p.File, Line: p.Line, Key: p.Name, Text: fmt.Sprintf(format, a...)}
	if p.Line > 0 {
		out.Column = 1
	}
	return out
}

// javaSetting is what a setting of Kafka's Java clients, beside those about connecting, is here. One
// without keys cannot be had: why says so.
type javaSetting struct {
	of   Role
	keys []string                             // ours, of client or workload
	as   func(value string) (string, *string) // our value, and what is wrong with theirs; nil: the same
	why  string
}

// javaClient are the settings by Kafka's names; javaKeys and javaSpecial have those about connecting.
var javaClient = map[string]javaSetting{
	"client.id":                          {of: Producing | Consuming, keys: []string{"clientID"}},
	"metadata.max.age.ms":                {of: Producing | Consuming, keys: []string{"metadata.refreshFrequency"}, as: milliseconds},
	"request.timeout.ms":                 {of: Producing | Consuming, keys: []string{"net.requestTimeout"}, as: milliseconds},
	"retry.backoff.ms":                   {of: Producing | Consuming, keys: []string{"producer.retry.backoff", "metadata.retry.backoff"}, as: milliseconds},
	"retry.backoff.max.ms":               {of: Producing | Consuming, keys: []string{"producer.retry.maxBackoff", "metadata.retry.maxBackoff"}, as: milliseconds},
	"socket.connection.setup.timeout.ms": {of: Producing | Consuming, keys: []string{"net.dialTimeout"}, as: milliseconds},

	"acks":                                  {of: Producing, keys: []string{"producer.requiredAcks"}, as: oneOf("0", "1", "all", "-1")},
	"linger.ms":                             {of: Producing, keys: []string{"producer.flush.frequency"}, as: milliseconds},
	"batch.size":                            {of: Producing, keys: []string{"producer.flush.bytes"}, as: whole},
	"buffer.memory":                         {of: Producing, keys: []string{"producer.buffer.bytes"}, as: whole},
	"compression.type":                      {of: Producing, keys: []string{"producer.compression"}, as: oneOf("none", "gzip", "snappy", "lz4", "zstd")},
	"compression.gzip.level":                {of: Producing, keys: []string{"producer.compressionLevel"}, as: integer},
	"compression.lz4.level":                 {of: Producing, keys: []string{"producer.compressionLevel"}, as: integer},
	"compression.zstd.level":                {of: Producing, keys: []string{"producer.compressionLevel"}, as: integer},
	"enable.idempotence":                    {of: Producing, keys: []string{"producer.idempotent"}, as: trueOrFalse},
	"max.in.flight.requests.per.connection": {of: Producing, keys: []string{"net.maxOpenRequests"}, as: whole},
	"max.request.size":                      {of: Producing, keys: []string{"producer.maxMessageBytes", "producer.maxRequestBytes"}, as: whole},
	"delivery.timeout.ms":                   {of: Producing, keys: []string{"producer.deliveryTimeout"}, as: milliseconds},
	"retries":                               {of: Producing, keys: []string{"producer.retry.max"}, as: whole},
	"partitioner.class":                     {of: Producing, keys: []string{"producer.partitioner"}, as: partitioner},
	"transactional.id":                      {of: Producing, keys: []string{"producer.transaction.id"}},
	"transaction.timeout.ms":                {of: Producing, keys: []string{"producer.transaction.timeout"}, as: milliseconds},

	"group.id":                      {of: Consuming, keys: []string{"consumers.group"}},
	"auto.offset.reset":             {of: Consuming, keys: []string{"consumers.from"}, as: offsetReset},
	"enable.auto.commit":            {of: Consuming, keys: []string{"consumers.commit"}, as: autoCommit},
	"auto.commit.interval.ms":       {of: Consuming, keys: []string{"consumer.group.commitInterval"}, as: milliseconds},
	"fetch.min.bytes":               {of: Consuming, keys: []string{"consumer.minBytes"}, as: whole},
	"fetch.max.bytes":               {of: Consuming, keys: []string{"consumer.maxBytes"}, as: whole},
	"fetch.max.wait.ms":             {of: Consuming, keys: []string{"consumer.maxWait"}, as: milliseconds},
	"max.partition.fetch.bytes":     {of: Consuming, keys: []string{"consumer.maxPartitionBytes"}, as: whole},
	"isolation.level":               {of: Consuming, keys: []string{"consumer.isolationLevel"}, as: oneOf("read_uncommitted", "read_committed")},
	"check.crcs":                    {of: Consuming, keys: []string{"consumer.checkCrc"}, as: trueOrFalse},
	"client.rack":                   {of: Producing | Consuming, keys: []string{"consumer.rack"}},
	"session.timeout.ms":            {of: Consuming, keys: []string{"consumer.group.sessionTimeout"}, as: milliseconds},
	"heartbeat.interval.ms":         {of: Consuming, keys: []string{"consumer.group.heartbeatInterval"}, as: milliseconds},
	"max.poll.interval.ms":          {of: Consuming, keys: []string{"consumer.group.maxPollInterval", "consumer.group.rebalanceTimeout"}, as: milliseconds},
	"group.protocol":                {of: Consuming, keys: []string{"consumer.group.protocol"}, as: lower(oneOf("classic", "consumer"))},
	"group.remote.assignor":         {of: Consuming, keys: []string{"consumer.group.remoteAssignor"}},
	"partition.assignment.strategy": {of: Consuming, keys: []string{"consumer.group.balancers"}, as: assignors},
	"allow.auto.create.topics":      {of: Consuming, keys: []string{"metadata.allowAutoTopicCreation"}, as: trueOrFalse},
	"max.poll.records":              {of: Consuming, why: "a reader of kbench's has no polls: it takes what was fetched; consumer.queueCapacity bounds that (--set)"},
	"group.instance.id":             {of: Consuming, why: "static members are not part of a workload"},
	"exclude.internal.topics":       {of: Consuming, why: "topics whose names begin with two underscores are left out of a pattern in any case"},
	"default.api.timeout.ms":        {of: Consuming, why: "what waits here is bounded by net.requestTimeout (request.timeout.ms) and admin.timeout (--set)"},
	"share.acknowledgement.mode":    {of: Consuming, why: "share groups are not supported"},
	"share.acquire.mode":            {of: Consuming, why: "share groups are not supported"},
	"internal.throw.on.fetch.stable.offset.unsupported": {of: Consuming, why: "it is internal to the Java client"},

	"max.block.ms":                             {of: Producing, why: "a producer waits for room as long as the run lasts, which shows as delay"},
	"buffer.memory.allocation.strategy":        {of: Producing, why: "it is how the JVM's memory is laid out"},
	"partitioner.adaptive.partitioning.enable": {of: Producing, why: "messages without a key go to one partition a batch here; producer.partitioner has other ways (--set)"},
	"partitioner.availability.timeout.ms":      {of: Producing, why: "messages without a key go to one partition a batch here; producer.partitioner has other ways (--set)"},
	"partitioner.ignore.keys":                  {of: Producing, why: "set producer.partitioner=sticky to leave keys aside (--set)"},
	"partitioner.rack.aware":                   {of: Producing, why: "no partitioner of kbench's looks at racks"},
	"transaction.two.phase.commit.enable":      {of: Producing, why: "transactions end by themselves here, without a coordinator outside of Kafka"},

	"key.serializer":     {of: Producing, why: jvmOnly},
	"value.serializer":   {of: Producing, why: jvmOnly},
	"key.deserializer":   {of: Consuming, why: jvmOnly},
	"value.deserializer": {of: Consuming, why: jvmOnly},

	"interceptor.classes":                      {of: Producing | Consuming, why: jvmOnly},
	"metric.reporters":                         {of: Producing | Consuming, why: jvmOnly},
	"security.providers":                       {of: Producing | Consuming, why: jvmOnly},
	"metrics.num.samples":                      {of: Producing | Consuming, why: jvmMetrics},
	"metrics.recording.level":                  {of: Producing | Consuming, why: jvmMetrics},
	"metrics.sample.window.ms":                 {of: Producing | Consuming, why: jvmMetrics},
	"enable.metrics.push":                      {of: Producing | Consuming, why: "clients' metrics are not pushed to brokers; kbench run has --metrics-addr"},
	"send.buffer.bytes":                        {of: Producing | Consuming, why: socketBuffers},
	"receive.buffer.bytes":                     {of: Producing | Consuming, why: socketBuffers},
	"client.dns.lookup":                        {of: Producing | Consuming, why: "every address of a name is tried in any case"},
	"connections.max.idle.ms":                  {of: Producing | Consuming, why: "connections stay open as long as the run lasts"},
	"reconnect.backoff.ms":                     {of: Producing | Consuming, why: "connecting again waits as other attempts do: set retry.backoff.ms"},
	"reconnect.backoff.max.ms":                 {of: Producing | Consuming, why: "connecting again waits as other attempts do: set retry.backoff.max.ms"},
	"metadata.max.idle.ms":                     {of: Producing | Consuming, why: noCounterpart},
	"metadata.cluster.check.enable":            {of: Producing | Consuming, why: noCounterpart},
	"metadata.recovery.strategy":               {of: Producing | Consuming, why: noCounterpart},
	"metadata.recovery.rebootstrap.trigger.ms": {of: Producing | Consuming, why: noCounterpart},
	"bootstrap.resolve.timeout.ms":             {of: Producing | Consuming, why: noCounterpart},
	"socket.connection.setup.timeout.max.ms":   {of: Producing | Consuming, why: "every attempt has the same time: set socket.connection.setup.timeout.ms"},
	"bootstrap.controllers":                    {of: Producing | Consuming, why: "it is for administration; name brokers"},
}

// Why a setting cannot be had.
const (
	jvmOnly       = "it names Java code, which cannot be run here"
	jvmMetrics    = "it is about the metrics of the JVM; a result has histograms of everything"
	socketBuffers = "the system sizes the sockets' buffers"
	noCounterpart = "the client of kbench has nothing like it"
)

// Translate gives what settings of Kafka's Java clients are in a workload, for a client of the roles
// given: keys of client and workload, with the values as they stand in YAML. A later property goes
// before an earlier one of the same name. How to connect is refused: it stands in the file of
// --command-config, which Load reads; bootstrap.servers is the caller's.
func Translate(ps []Property, roles Role) (as []settings.Assignment, warnings []string, problems settings.Problems) {
	last := map[string]int{}
	for i, p := range ps {
		last[p.Name] = i
	}
	codec := "none"
	if i, given := last["compression.type"]; given {
		codec = ps[i].Value
	}
	for i, p := range ps {
		if last[p.Name] != i {
			continue
		}
		s, known := javaClient[p.Name]
		switch {
		case !known:
			problems = append(problems, unknownProperty(p))
		case s.of&roles == 0 && !p.Lenient:
			problems = append(problems, p.problem("is a setting of %s", map[Role]string{Producing: "producers", Consuming: "consumers"}[s.of]))
		case s.of&roles == 0, isLevel(p.Name) && p.Name != "compression."+codec+".level": // as Java does
		case len(s.keys) == 0 && p.Lenient:
			warnings = append(warnings, p.problem("is not used: %s", s.why).String())
		case len(s.keys) == 0:
			problems = append(problems, p.problem("cannot be had: %s", s.why))
		default:
			more, problem := s.assign(p)
			as, problems = append(as, more...), append(problems, problem...)
		}
	}
	return as, warnings, problems
}

// isLevel: compression.gzip.level and its like, not isolation.level.
func isLevel(name string) bool {
	return strings.HasPrefix(name, "compression.") && strings.HasSuffix(name, ".level")
}

// assign gives the value to each of our keys.
func (s javaSetting) assign(p Property) (as []settings.Assignment, problems settings.Problems) {
	value := strings.TrimSpace(p.Value)
	if s.as != nil {
		var wrong *string
		if value, wrong = s.as(value); wrong != nil {
			return nil, settings.Problems{p.problem("is %q: %s", p.Value, *wrong)}
		}
	}
	for _, key := range s.keys {
		as = append(as, settings.Assignment{Key: key, Value: settings.Of(value)})
	}
	return as, nil
}

// unknownProperty refuses a name, which may be one of those about connecting.
func unknownProperty(p Property) settings.Problem {
	if javaKeys[p.Name] != "" || javaSpecial[p.Name] != nil || strings.HasPrefix(p.Name, "ssl.") || strings.HasPrefix(p.Name, "sasl.") {
		return settings.Problem{File: p.File, Line: p.Line, Key: p.Name,
			Text: "is about how to connect, and a flag shows in ps and in the shell's history: put it into the file of --command-config"}
	}
	if near := nearestName(p.Name, (&javaFile{}).known()); near != "" {
		return p.problem("unknown setting; did you mean %s?", near)
	}
	return p.problem("is no setting of a Kafka client")
}

func say(format string, a ...any) *string {
	text := fmt.Sprintf(format, a...)
	return &text
}

// milliseconds are a duration.
func milliseconds(v string) (string, *string) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > int64(365*24*time.Hour/time.Millisecond) {
		return "", say("a whole number of milliseconds is needed, up to a year")
	}
	return settings.FormatDuration(time.Duration(n) * time.Millisecond), nil
}

func whole(v string) (string, *string) {
	if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < 0 {
		return "", say("a whole number is needed")
	}
	return v, nil
}

func trueOrFalse(v string) (string, *string) {
	v = strings.ToLower(v)
	if v != "true" && v != "false" {
		return "", say("true or false is needed")
	}
	return v, nil
}

func oneOf(words ...string) func(string) (string, *string) {
	return func(v string) (string, *string) {
		if !slices.Contains(words, v) {
			return "", say("one of %s is needed", strings.Join(words, ", "))
		}
		return v, nil
	}
}

// lower takes any case, as Java does.
func lower(as func(string) (string, *string)) func(string) (string, *string) {
	return func(v string) (string, *string) { return as(strings.ToLower(v)) }
}

func integer(v string) (string, *string) {
	if _, err := strconv.Atoi(v); err != nil {
		return "", say("a whole number is needed")
	}
	return v, nil
}

// partitioner knows those that Kafka brings along.
func partitioner(v string) (string, *string) {
	switch v[strings.LastIndexByte(v, '.')+1:] {
	case "":
		return "murmur2", nil
	case "RoundRobinPartitioner":
		return "roundrobin", nil
	}
	return "", say("%s; producer.partitioner has ways to place messages (--set)", jvmOnly)
}

// offsetReset is where a group begins that has committed nothing.
func offsetReset(v string) (string, *string) {
	switch strings.ToLower(v) {
	case "earliest":
		return "earliest", nil
	case "latest":
		return "run", nil
	}
	return "", say("earliest or latest is needed")
}

func autoCommit(v string) (string, *string) {
	v, wrong := trueOrFalse(v)
	if wrong != nil {
		return "", wrong
	}
	return map[string]string{"true": "interval", "false": "none"}[v], nil
}

// assignors are the classes that Kafka brings along, by our names.
func assignors(v string) (string, *string) {
	ours := map[string]string{"RangeAssignor": "range", "RoundRobinAssignor": "roundrobin", "StickyAssignor": "sticky", "CooperativeStickyAssignor": "cooperative-sticky"}
	var names []string
	for class := range strings.SplitSeq(v, ",") {
		class = strings.TrimSpace(class)
		name := ours[class[strings.LastIndexByte(class, '.')+1:]]
		if name == "" {
			return "", say("%s; there are range, roundrobin, sticky and cooperative-sticky (--set consumer.group.balancers)", jvmOnly)
		}
		names = append(names, name)
	}
	return strings.Join(names, ","), nil
}
