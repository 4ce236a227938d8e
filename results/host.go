package results

import (
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HostInfo describes this machine. It takes about 25 ms, for it measures the timer. What the
// system does not tell stays empty: outside Linux that is most of it.
func HostInfo() Host {
	h := hostFrom(os.DirFS("/"))
	h.Hostname, _ = os.Hostname()
	h.Passing = passing(h.Hostname, os.Getenv)
	h.OS = runtime.GOOS + "/" + runtime.GOARCH
	h.CPUs = runtime.NumCPU()
	h.GOMAXPROCS = runtime.GOMAXPROCS(0)
	h.GoVersion = runtime.Version()
	h.TimerErrorNs = timerError()
	h.ClockReadNs = clockRead()
	return h
}

var (
	containerID  = regexp.MustCompile(`^[0-9a-f]{12}$`)
	gitlabRunner = regexp.MustCompile(`^runner-.+-project-\d+-concurrent-\d+`)
)

// passing says why a host is not likely to be there again, as far as its name and the environment
// give it away.
func passing(hostname string, env func(string) string) string {
	switch {
	case env("RUNNER_ENVIRONMENT") == "github-hosted":
		return "a hosted runner of GitHub's"
	case env("GITLAB_CI") != "" && gitlabRunner.MatchString(hostname):
		return "a container of a GitLab job"
	case env("KUBERNETES_SERVICE_HOST") != "":
		return "a pod of Kubernetes"
	case containerID.MatchString(hostname):
		return "a container named by its id"
	}
	return ""
}

// hostFrom reads what Linux tells in /proc and /sys.
func hostFrom(root fs.FS) Host {
	limits := cgroupLimits(root)
	return Host{
		Kernel:       readLine(root, "proc/sys/kernel/osrelease"),
		CPUModel:     cpuModel(root),
		MemoryBytes:  memory(root),
		CgroupCPUs:   limits.cpus,
		CgroupMemory: limits.memory,
		ClockSource:  readLine(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
	}
}

func readLine(root fs.FS, path string) string {
	data, err := fs.ReadFile(root, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// field finds "name : value" in a file of such lines.
func field(root fs.FS, path string, names ...string) string {
	data, _ := fs.ReadFile(root, path)
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(line, ":")
		if found && slices.Contains(names, strings.TrimSpace(key)) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpuModel is what /proc/cpuinfo calls it; ARM kernels name the board at best.
func cpuModel(root fs.FS) string {
	return field(root, "proc/cpuinfo", "model name", "Model", "Hardware", "cpu model")
}

func memory(root fs.FS) int64 {
	kilobytes, found := strings.CutSuffix(field(root, "proc/meminfo", "MemTotal"), " kB")
	n, err := strconv.ParseInt(kilobytes, 10, 64)
	if !found || err != nil {
		return 0
	}
	return n << 10
}

const timerSamples = 15

// timerError is the median by which a sleep of 1 ms comes too late: what a schedule kept with
// sleeps is off by.
func timerError() int64 {
	over := make([]int64, timerSamples)
	for i := range over {
		start := time.Now()
		time.Sleep(time.Millisecond)
		over[i] = int64(time.Since(start) - time.Millisecond)
	}
	slices.Sort(over)
	return max(over[timerSamples/2], 0)
}

// clockRead is the cost of reading the monotonic clock: the least mean of a few tries, as
// whatever else runs only makes it longer.
func clockRead() int64 {
	const tries, reads = 5, 2000
	least := time.Duration(1 << 62)
	for range tries {
		start := time.Now()
		for range reads {
			time.Since(start)
		}
		least = min(least, time.Since(start)/reads)
	}
	return max(int64(least), 1)
}
