package results

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Usage is what this process has used since it began, at one moment. Two of them, from the
// start and the end of the measured phase, make a Generator.
type Usage struct {
	At time.Time
	// CPU is user and system time of all threads. Where the system does not tell, 0.
	CPU time.Duration
	// MaxRSSBytes is the largest resident size so far; 0 where the system does not tell.
	MaxRSSBytes              int64
	AllocBytes, AllocObjects int64
	// GCCycles and GCPause are the collector's: finished cycles and the sum of their pauses.
	GCCycles int64
	GCPause  time.Duration
	// HostCPU, HostIdle and Stolen are CPU time of the whole machine, in ticks: all of it, what was
	// not used, and what the hypervisor gave to others. 0 outside Linux.
	HostCPU, HostIdle, Stolen int64

	pauses   []gcPause
	counts   []uint64  // of runtime/metrics' pauses
	boundary []float64 // seconds; one more than counts
}

type gcPause struct {
	end    time.Time
	length time.Duration
}

// Names in runtime/metrics.
const (
	metricPauses  = "/sched/pauses/total/gc:seconds"
	metricBytes   = "/gc/heap/allocs:bytes"
	metricObjects = "/gc/heap/allocs:objects"
)

// ReadUsage takes well under a millisecond and does not stop the world. It is safe for concurrent use.
func ReadUsage() Usage {
	u := Usage{At: time.Now()}
	u.CPU, u.MaxRSSBytes = processUsage()
	u.HostCPU, u.HostIdle, u.Stolen = hostTicks(os.DirFS("/"))
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.GCCycles, u.GCPause = gc.NumGC, gc.PauseTotal
	for i, length := range gc.Pause {
		u.pauses = append(u.pauses, gcPause{gc.PauseEnd[i], length})
	}
	samples := []metrics.Sample{{Name: metricBytes}, {Name: metricObjects}, {Name: metricPauses}}
	metrics.Read(samples)
	u.AllocBytes, u.AllocObjects = number(samples[0]), number(samples[1])
	if samples[2].Value.Kind() == metrics.KindFloat64Histogram {
		h := samples[2].Value.Float64Histogram()
		u.counts, u.boundary = h.Counts, h.Buckets
	}
	return u
}

func number(s metrics.Sample) int64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(s.Value.Uint64(), math.MaxInt64))
}

// Since is what was used from earlier to u. It leaves CPUNsPerMessage, PauseMaxNs and
// LatenessP99 to those who know them; CPUSince helps with the first.
func (u Usage) Since(earlier Usage) Generator {
	g := Generator{
		CPUAvailable:   CPUAvailable(),
		MaxRSSBytes:    u.MaxRSSBytes,
		GCPauseTotalNs: int64(u.GCPause - earlier.GCPause),
		GCPauseMaxNs:   int64(u.longestPause(earlier)),
		GCCycles:       u.GCCycles - earlier.GCCycles,
		AllocBytes:     u.AllocBytes - earlier.AllocBytes,
		AllocObjects:   u.AllocObjects - earlier.AllocObjects,
	}
	if elapsed := u.At.Sub(earlier.At); elapsed > 0 {
		g.CPUCores = float64(u.CPUSince(earlier)) / float64(elapsed)
	}
	if ticks := u.HostCPU - earlier.HostCPU; ticks > 0 {
		g.StolenShare = max(0, float64(u.Stolen-earlier.Stolen)/float64(ticks))
		g.HostCPUShare = min(1, max(0, 1-float64(u.HostIdle-earlier.HostIdle)/float64(ticks)))
	}
	return g
}

// CPUSince is the CPU time, user and system, from earlier to u.
func (u Usage) CPUSince(earlier Usage) time.Duration { return u.CPU - earlier.CPU }

// longestPause is exact while the runtime remembers all cycles since (the last 256), with both
// pauses of a cycle taken together; else it is
// the upper end of the bucket of runtime/metrics that the longest falls in.
func (u Usage) longestPause(earlier Usage) time.Duration {
	var longest time.Duration
	if u.GCCycles-earlier.GCCycles <= int64(len(u.pauses)) {
		for _, p := range u.pauses[:u.GCCycles-earlier.GCCycles] {
			longest = max(longest, p.length)
		}
		return longest
	}
	for i, n := range u.counts {
		if i < len(earlier.counts) && n == earlier.counts[i] || n == 0 {
			continue
		}
		edge := u.boundary[i+1]
		if math.IsInf(edge, 1) {
			edge = u.boundary[i]
		}
		longest = time.Duration(edge * float64(time.Second))
	}
	return longest
}

var quota = sync.OnceValue(func() float64 { return cgroupLimits(os.DirFS("/")).cpus })

// CPUAvailable is the number of cores this process may use: GOMAXPROCS, or the quota of its
// control group (as it was when first asked) if that is less.
func CPUAvailable() float64 {
	cores := float64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	if q := quota(); q > 0 && q < cores {
		return q
	}
	return cores
}

// ResidentBytes is the resident size of this process now; 0 where the system does not tell, which is
// outside Linux. It takes some ten microseconds and is safe for concurrent use.
func ResidentBytes() int64 { return residentBytes(os.DirFS("/"), int64(os.Getpagesize())) }

// residentBytes reads the second field of /proc/self/statm, which is in pages.
func residentBytes(root fs.FS, page int64) int64 {
	data, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || pages < 0 || pages > math.MaxInt64/page {
		return 0
	}
	return pages * page
}

// hostTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal; what follows is contained in user already.
func hostTicks(root fs.FS) (all, idle, stolen int64) {
	data, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return 0, 0, 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, 0
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, 0
		}
		all, stolen = all+n, n
		if i == 3 || i == 4 { // idle, and waiting for a disk
			idle += n
		}
	}
	return all, idle, stolen
}
