// Package workloads holds workload definitions: what load to put on a cluster, with which
// client settings, in which phases, over which sweep. It decodes them strictly, checks them
// whole, and ships the built-in ones.
package workloads

import (
	"regexp"
	"time"

	"github.com/kbench/kbench/client/settings"
)

// Definition is one workload. The zero value is not usable; Default returns one with every
// default in place, and Load fills it from YAML. The key tags are the keys of the YAML file and
// of --set; unit and doc tags are what `kbench workloads --schema` prints.
type Definition struct {
	Name        string `key:"name" doc:"Name of the workload; also the first part of the result directory's name."`
	Description string `key:"description" doc:"The question this workload answers, for people."`
	Seed        uint64 `key:"seed" doc:"Seed of plan order, payloads and keys. The same seed gives the same run."`

	Topics    Topics    `key:"topics"`
	Producers Producers `key:"producers"`
	Consumers Consumers `key:"consumers"`
	Payload   Payload   `key:"payload"`
	Phases    Phases    `key:"phases"`
	Record    Record    `key:"record"`
	Validity  Validity  `key:"validity"`

	Faults Faults `key:"faults" doc:"What happens to connections, leaders and answers at times of the measured phase: {at: 10s, kind: stall, for: 2s}, on the command line as 'at=10s kind=stall for=2s'. Kinds: cut (for: new connections are refused so long), delay (for, delay, jitter), stall (for) and bandwidth (for, bytesPerSecond), each of one broker (its id, or first for the lowest there is) or of all, through a proxy in front of the brokers; leader (partition, to: a broker), by the admin API; error (for, request, code, broker, partition), by the embedded broker."`

	Design Design `key:"design"`

	Repeat     int      `key:"repeat" unit:"executions" doc:"Executions of every point, interleaved in random order within blocks."`
	Thresholds []string `key:"thresholds" doc:"Conditions on every run's figures, e.g. 'response.p99<20ms', 'errors<0.1%', 'lost=0'. A broken one ends kbench with exit code 3."`

	// Sweep maps a client or workload key, or a whole section, to the values it takes; Design says which
	// of their combinations are points. In the order of the file. Decoded by hand: its keys are keys.
	Sweep []Axis `key:"-"`
	// Points are chosen one by one, in place of a sweep: each sets keys to values.
	Points []Chosen `key:"-"`
	// Client are the client settings given in the file and by --set, in order, still with their
	// places, for the client's Config to take. They were checked against the client's schema.
	Client []settings.Assignment `key:"-"`
	// Times are the due times of a replayed schedule, in nanoseconds since the start of the measured
	// phase, as read by Load and Check; see ReadTimes.
	Times []int64 `key:"-"`
	// Source is the file's text as given.
	Source string `key:"-"`
	// File names where Source came from, for errors.
	File string `key:"-"`
	// Overrides are the command line's changes, as written: "--set payload.size=100".
	Overrides []string `key:"-"`

	timesFrom string // the file that Times are from
	// files are those that payloads are made from, by path.
	files map[string]*content

	// clientFields are the client's keys, to bring client settings into their canonical form.
	clientFields []settings.Field
}

// Axis is one swept key with its values, in the order given.
type Axis struct {
	Key    string
	Values []settings.Value
}

// Chosen is a point that was written down by itself: what it sets, in order; nothing at all is the
// workload as it is.
type Chosen []settings.Assignment

// Design says which combinations of a sweep's values are run.
type Design struct {
	Kind   string `key:"kind" enum:"matrix,oneFactor,sample" doc:"Which combinations of the sweep's values are points. matrix: all. oneFactor: the first value of every key, then each other value of one key at a time. sample: design.points of all, drawn by the seed; those that make no sense are named and others drawn in their place."`
	Points int    `key:"points" unit:"points" doc:"sample: number of points to run."`
}

// Kinds of designs.
const (
	DesignMatrix    = "matrix"
	DesignOneFactor = "oneFactor"
	DesignSample    = "sample"
)

// Topics are what producers write to and consumers read from.
type Topics struct {
	Name              string            `key:"name" doc:"An existing topic to use as it is; it is neither created nor deleted. Empty: topics are made for the run and deleted after it."`
	Include           string            `key:"include" doc:"For runs that only consume, in place of name: a regular expression (RE2) that the whole names of existing topics match. Kafka's internal topics, whose names begin with two underscores, are left out."`
	Count             int               `key:"count" unit:"topics" doc:"Number of topics made for the run."`
	Partitions        int               `key:"partitions" unit:"partitions" doc:"Partitions of each topic made."`
	ReplicationFactor int               `key:"replicationFactor" unit:"replicas" doc:"Replicas of each partition; 0 means as many as there are brokers, 3 at most."`
	Config            map[string]string `key:"config" doc:"Topic configuration by Kafka's own names, e.g. min.insync.replicas."`
	Keep              bool              `key:"keep" doc:"Leave the topics made for the run in place after it."`
}

// Existing says whether the topics are there already: the run neither makes nor deletes them.
func (t *Topics) Existing() bool { return t.Name != "" || t.Include != "" }

// Pattern matches the whole names of the topics that Include means.
func (t *Topics) Pattern() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(t.Include); err != nil { // in the user's words, not with ours around them
		return nil, err
	}
	return regexp.Compile("^(?:" + t.Include + ")$")
}

// Producers is the producing side of the load.
type Producers struct {
	Count int `key:"count" unit:"producers" doc:"Producer instances; 0 for a run that only consumes."`
	// Rate is messages per second over all producers together; 0 means as fast as the bounds
	// allow (closed loop).
	Rate float64 `key:"rate" unit:"messages/s" doc:"Messages a second over all producers together (or of each, by rateOf). 0: closed loop, as fast as the client's bounds allow; then there are no due times and no response series."`
	// RateOf says whose the rates and the schedule are.
	RateOf   string   `key:"rateOf" enum:"all,each" doc:"Whose the rate and the schedule's other rates and times are. all: of all producers together, dealt out in turn so that they are even. each: of every producer; the rate of all is that times producers.count."`
	Schedule Schedule `key:"schedule"`
	// Messages ends the measured phase after that many messages; 0 means by Phases.Duration.
	Messages        int64  `key:"messages" unit:"messages" doc:"Messages in all after which the measured phase ends; 0: by phases.duration alone."`
	ShareConnection bool   `key:"shareConnection" doc:"All producers share one client and its connections, instead of one each."`
	Form            string `key:"form" enum:"callback,channels,sync,batch" doc:"Which form of the client sends. callback: asynchronous, outcomes by callback. channels: the same through the channels Input, Successes and Errors. sync: one message at a time per producer. batch: what is due goes as one list, by the batch producer; producer.batch.async is its mode."`
	Await           string `key:"await" enum:"acked,received" doc:"What a producer of form sync waits for before its next message. acked: the acknowledgement. received: that every group of consumers has it as well, within phases.drain: one message at a time from end to end."`
	Pacer           string `key:"pacer" enum:"auto,sleep,nanosleep,spin" doc:"How a producer waits for the next due time. sleep: on the runtime's timers, up to a millisecond late. nanosleep: on a thread of its own, 40-100 us late. spin: never late, for a core each, which counts as CPU a message. auto: nanosleep with a core to spare beside the producers, spin from 20k/s a producer on with three, else sleep. What was used and how late it woke up is in the result."`
	Run             int    `key:"run" unit:"messages" doc:"Most messages handed to the client in one call."`

	Transactions Transactions `key:"transactions"`
}

// Transactions says whether, and in what portions, every producer sends in transactions: with Every or
// Messages above 0. A transaction is begun with its first message and ended when the first of the two is
// reached, also while nothing else is due, and at the end of the load.
type Transactions struct {
	Every    time.Duration `key:"every" doc:"Send in transactions, and commit each when it has been open for so long. Needs producer.idempotent. Every producer has a transactional id of its own: producer.transaction.id as it is for a single producer, with -0, -1, … behind it for several, made up for the run when it is empty. 0: not by time."`
	Messages int64         `key:"messages" unit:"messages" doc:"Send in transactions, and commit each with so many messages of a producer. 0: not by their number."`
	// AbortShare is from 0 to 1, evenly spread.
	AbortShare float64 `key:"abortShare" unit:"share" doc:"Share of the transactions that are aborted at their end in place of being committed, from 0 to 1, evenly spread."`
}

// On says whether producers send in transactions.
func (t *Transactions) On() bool { return t.Every > 0 || t.Messages > 0 }

// Schedule shapes the rate over time; see package pace.
type Schedule struct {
	Kind string `key:"kind" enum:"constant,ramp,step,burst,poisson,replay" doc:"Shape of the rate over time. replay: the times of a file."`
	// From is the rate a ramp starts from.
	From float64 `key:"from" unit:"messages/s" doc:"ramp: the rate it starts from; it ends at producers.rate with the measured phase."`
	// Steps are the rates of a step schedule, each for the same share of the measured phase.
	Steps []float64 `key:"steps" unit:"messages/s" doc:"step: the rates, each for an equal share of the measured phase."`
	// BurstEvery is the interval of a burst schedule.
	BurstEvery time.Duration `key:"burstEvery" doc:"burst: distance between the starts of two bursts; all messages of one are due at its start."`
	// File is where the times of a replayed schedule stand.
	File string `key:"file" doc:"replay: a file of due times since the start of the measured phase, one a line, in seconds (0.0125) or with a unit (12.5ms), none before the one above it; lines that begin with # are remarks. In a workload file the path is relative to it, on the command line and in a sweep to the working directory. With phases.duration=0 the measured phase ends with the last of them. The warm-up has their mean rate."`
}

// Consumers is the consuming side of the load.
type Consumers struct {
	Count  int    `key:"count" unit:"readers" doc:"Reader instances in each group, among which the partitions are shared out. 0 for none."`
	Groups int    `key:"groups" unit:"groups" doc:"Groups of readers, each of which reads everything: fan-out. Lost, duplicated and reordered messages are looked for in each."`
	Group  string `key:"group" doc:"mode group: a group of this name, which goes on from what it has committed and is not deleted after the run. Empty: groups of the run's own."`
	Mode   string `key:"mode" enum:"partition,group" doc:"How readers get their partitions. partition: dealt out once, without a group on the cluster. group: as members of a consumer group, by the settings consumer.group.*."`
	Form   string `key:"form" enum:"batch,message" doc:"Which form of the reader receives: FetchBatch or one FetchMessage a message."`
	From   string `key:"from" enum:"run,earliest" doc:"Where reading starts: at the end of the log as the run begins, or at its beginning."`
	Commit string `key:"commit" enum:"interval,batch,none" doc:"mode group: when offsets are committed. interval: every consumer.group.commitInterval, a second when that is 0. batch: after every run of messages received, and waited for. none: never, so that members that take partitions over begin where the group began."`
	// StartAfter lets a backlog grow before the consumers are opened.
	StartAfter time.Duration `key:"startAfter" doc:"How long after the start of the measured phase the consumers begin, where they would have begun at once: with the backlog of that time and of the warm-up. Then the time to zero lag is measured."`
	// Idle ends a run that only consumes when nothing comes any more.
	Idle    time.Duration `key:"idle" doc:"A run that only consumes ends when nothing was received for this long. 0: never."`
	Changes []Change      `key:"changes" doc:"mode group: members that join, leave or are killed during the measured phase, in every group: {at: 5s, add: 2}, {at: 8s, remove: 1} or {at: 10s, kill: 1}, on the command line as '5s add 2'. Those leave that have been there longest."`
}

// Payload is what the messages hold.
type Payload struct {
	Kind            string  `key:"kind" enum:"random,lines,template,json" doc:"What values are made of. random: random bytes and filler, by size and compressibility. lines: the values in file, between delimiters. template: a text with generators in it. json: an object of fields with types."`
	Size            int     `key:"size" unit:"bytes" doc:"random: size of every value; with sizes.kind normal their mean."`
	Sizes           Sizes   `key:"sizes"`
	Compressibility float64 `key:"compressibility" unit:"share" doc:"random: share of a value that compresses away, from 0 (random) to 0.95."`
	// File is where lines or a template stand.
	File      string `key:"file" doc:"lines: the file that holds the values. template: the file that holds the template, in place of template. In a workload file the path is relative to it, on the command line and in a sweep to the working directory."`
	Delimiter string `key:"delimiter" doc:"lines: what stands between two values, as it is, not a pattern; in double quotes YAML knows \\n and \\t. Nothing after the last one is no value; an empty one elsewhere is."`
	Order     string `key:"order" enum:"sequence,random" doc:"lines: which value a message has. sequence: one after the other, and again from the first. random: each as likely, by the seed."`
	Template  string `key:"template" doc:"template: a text with generators in {{ }}, such as 'order {{seq}} of {{text 5 20}}'. Generators: seq (the message's number, from 0), millis (milliseconds since 1970: from 2026 on, one more a message), int MIN MAX, float MIN MAX or float MIN MAX DIGITS, bool, hex N, uuid, text N or text MIN MAX (small letters), choice A B … (double quotes around what has spaces)."`
	// Fields are those of JSON values.
	Fields map[string]string `key:"fields" doc:"json: names of fields with the generator of each, such as {id: uuid, user.age: int 18 99, state: choice new paid}; a dot leads into an object. Generators are those of template; what they make is a number, true or false, or a text, as its type has it."`
	// Headers are record headers of every message.
	Headers map[string]string `key:"headers" doc:"Record headers of every message: names with a template each, such as {app: orders, trace: '{{hex 32}}'}. They come in the order of their names, before the stamp's."`
	Keys    Keys              `key:"keys"`
	// Stamp says where a message carries its producer, number, due time and checksum.
	Stamp string `key:"stamp" enum:"auto,value,header,none" doc:"Where a message carries its number, due time and checksum, 32 bytes: in the value (of kind random alone), in a record header, or nowhere (then there is no e2e and no integrity check). auto: in the value if that is random and always has 32 bytes, else in a header."`
}

// Sizes says how the sizes of random values are spread.
type Sizes struct {
	Kind      string  `key:"kind" enum:"fixed,uniform,normal,zipf,file" doc:"How the sizes of random values are spread. fixed: all have payload.size. uniform: any from min to max is as likely. normal: around payload.size with deviation, cut off at min and max. zipf: min is the most likely, larger ones up to max ever less, with skew. file: any of a list is as likely."`
	Min       int     `key:"min" unit:"bytes" doc:"uniform, normal, zipf: the smallest size."`
	Max       int     `key:"max" unit:"bytes" doc:"uniform, normal, zipf: the largest size."`
	Deviation float64 `key:"deviation" unit:"bytes" doc:"normal: the standard deviation."`
	Skew      float64 `key:"skew" doc:"zipf: the exponent s, above 0."`
	File      string  `key:"file" doc:"file: a file of sizes in bytes, one a line, each as often as it is to be seen; lines that begin with # are remarks. Paths as for payload.file."`
}

// Keys says how keys are chosen.
type Keys struct {
	Kind string  `key:"kind" enum:"none,sequential,uniform,zipf" doc:"How the key of a message is chosen."`
	Size int     `key:"size" unit:"bytes" doc:"Size of every key, decimal digits with zeros in front; 0: as many digits as the number has."`
	N    int64   `key:"n" unit:"keys" doc:"Number of different keys."`
	Skew float64 `key:"skew" doc:"zipf: the exponent s, above 0."`
	File string  `key:"file" doc:"A file of keys, one a line, in place of size and n; kind says how often each is chosen, with zipf the first most often. Paths as for payload.file."`
}

// Phases is the run's course: warm-up, measured phase, cool-down, drain.
type Phases struct {
	WarmUp time.Duration `key:"warmUp" doc:"Load before the measured phase, not in any figure."`
	// WarmUpMessages ends the warm-up after a number of messages, in place of WarmUp.
	WarmUpMessages int64         `key:"warmUpMessages" unit:"messages" doc:"Messages of the warm-up, over all producers, after which the measured phase begins, in place of warmUp, which is 0 then. 0: by warmUp."`
	Duration       time.Duration `key:"duration" doc:"Length of the measured phase."`
	Named          []Stage       `key:"named" doc:"Parts of the measured phase with figures of their own and, where given, rates of their own: {name: peak, for: 10s, rate: 5k}, on the command line as 'peak 10s 5k'. They follow each other and make up the measured phase, in place of duration; each is a multiple of interval long."`
	CoolDown       time.Duration `key:"coolDown" doc:"Load after the measured phase, not in its figures, so that its last messages are answered under load."`
	Steady         bool          `key:"steady" doc:"Find where the figures became steady (MSER-5 with a test for a trend that is left) and leave out what was before, as a warm-up found. The figure looked at is, by interval, the mean response with a rate and the rate without. Without a steady state the run is invalid. Needs 50 intervals."`
	// Drain bounds the wait, after the last due time, for outcomes and arrivals.
	Drain    time.Duration `key:"drain" doc:"Longest wait after the measured phase for outcomes still open; what is open then is counted as unknown."`
	Interval time.Duration `key:"interval" doc:"Length of one window of the timeline and of the HdrHistogram log."`
}

// Record says which figures are kept besides those of the whole.
type Record struct {
	PerProducer  bool `key:"perProducer" doc:"Keep counts and latencies of every producer instance, in a file of their own; about 3 KB of memory each."`
	PerPartition bool `key:"perPartition" doc:"Keep counts and latencies of every partition that is written to, in a file of their own; about 3 KB of memory each."`
}

// Validity are the limits of the verdict.
type Validity struct {
	MinRateShare     float64       `key:"minRateShare" unit:"share" doc:"Achieved share of the asked rate below which a run is invalid."`
	MaxLateness      time.Duration `key:"maxLateness" doc:"Pacer lateness p99 that is always allowed."`
	MaxLatenessShare float64       `key:"maxLatenessShare" unit:"share" doc:"Pacer lateness p99 allowed as a share of response p99."`
	MaxCPUShare      float64       `key:"maxCpuShare" unit:"share" doc:"Share of the CPU it may use above which the generator is too busy."`
	MaxStolenShare   float64       `key:"maxStolenShare" unit:"share" doc:"Share of CPU time stolen by the hypervisor above which a run is invalid."`
	MaxOwnShare      float64       `key:"maxOwnShare" unit:"share" doc:"When the rate is missed: share of the time behind the schedule that producers may be at work themselves, in place of being held up by the cluster, before the run is called generator-bound. 0: any."`
	MaxCeilingShare  float64       `key:"maxCeilingShare" unit:"share" doc:"Share of the generator's ceiling (kbench ceiling) above which a rate asked for or reached is warned of. 0: any."`
	MaxLittleError   float64       `key:"maxLittleError" unit:"share" doc:"How far rate × mean service time may be from the messages in flight (Little's law), as a share, before a run is warned that its figures contradict each other. 0: any."`
	MaxPause         time.Duration `key:"maxPause" doc:"Longest pause of the generator itself that is allowed."`
	MaxGCPauseShare  float64       `key:"maxGcPauseShare" unit:"share" doc:"Longest pause of the generator's garbage collector that is allowed, as a share of response p99 (of service p99 without a rate). One of maxLateness always is. 0: any."`
	MaxHostCPUShare  float64       `key:"maxHostCpuShare" unit:"share" doc:"Share of all the machine's CPU in use above which a run is warned of: generator and, on the same machine, brokers wait for processors then. 0: never."`
}

// Length is that of the measured phase; 0 when only a number of messages or a file of times ends it.
func (p *Phases) Length() time.Duration {
	if len(p.Named) == 0 {
		return p.Duration
	}
	var sum time.Duration
	for _, s := range p.Named {
		sum += min(s.For, maxStage)
	}
	return sum
}

// Whose the rates of a workload are; see Producers.RateOf.
const (
	OfAll  = "all"
	OfEach = "each"
)

// Fleet is how many times the rates of the workload are sent at: 1, or once for each producer.
func (p *Producers) Fleet() float64 {
	if p.RateOf == OfEach {
		return float64(p.Count)
	}
	return 1
}

// Open says whether messages have due times.
func (d *Definition) Open() bool {
	switch {
	case d.Producers.Count == 0:
		return false
	case d.Producers.Schedule.Kind == "step" || d.Producers.Schedule.Kind == "replay":
		return true
	}
	for _, s := range d.Phases.Named {
		if s.Rate > 0 {
			return true
		}
	}
	return d.Producers.Rate > 0
}
