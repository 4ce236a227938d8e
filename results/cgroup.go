package results

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// limits of a control group; 0 means unlimited.
type limits struct {
	cpus   float64
	memory int64
}

const cgroupRoot = "sys/fs/cgroup"

// unlimitedMemory is where version 1 begins to mean no limit: it writes the largest multiple
// of a page that fits in 63 bits.
const unlimitedMemory = 1 << 60

// cgroupLimits finds the tightest limits of this process's control group and those around it,
// for version 2 and version 1 (https://docs.kernel.org/admin-guide/cgroup-v2.html and
// cgroup-v1). In a container the path in /proc/self/cgroup may be the host's, which is not
// there inside; the root of the mount is then the container's own group.
func cgroupLimits(root fs.FS) limits {
	var l limits
	data, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers := strings.Split(parts[1], ",")
		switch {
		case parts[0] == "0" && parts[1] == "":
			l.tighten(root, cgroupRoot, parts[2], version2)
			l.tighten(root, cgroupRoot+"/unified", parts[2], version2)
		case slices.Contains(controllers, "cpu"):
			l.tighten(root, path.Join(cgroupRoot, parts[1]), parts[2], version1)
			l.tighten(root, cgroupRoot+"/cpu", parts[2], version1)
		case slices.Contains(controllers, "memory"):
			l.tighten(root, cgroupRoot+"/memory", parts[2], version1)
		}
	}
	return l
}

// tighten takes the limits of a group and of all groups around it up to the mount.
func (l *limits) tighten(root fs.FS, mount, group string, read func(fs.FS, string) limits) {
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		found := read(root, path.Join(mount, dir))
		if found.cpus > 0 && (l.cpus == 0 || found.cpus < l.cpus) {
			l.cpus = found.cpus
		}
		if found.memory > 0 && (l.memory == 0 || found.memory < l.memory) {
			l.memory = found.memory
		}
		if dir == "/" {
			return
		}
	}
}

func version2(root fs.FS, dir string) limits {
	quota, period, _ := strings.Cut(readLine(root, dir+"/cpu.max"), " ")
	return limits{cpus: share(quota, period), memory: amount(readLine(root, dir+"/memory.max"))}
}

func version1(root fs.FS, dir string) limits {
	return limits{
		cpus:   share(readLine(root, dir+"/cpu.cfs_quota_us"), readLine(root, dir+"/cpu.cfs_period_us")),
		memory: amount(readLine(root, dir+"/memory.limit_in_bytes")),
	}
}

// share is quota ÷ period in cores; "max" and −1 mean no limit.
func share(quota, period string) float64 {
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || !(q > 0 && p > 0) {
		return 0
	}
	return q / p
}

func amount(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n >= unlimitedMemory {
		return 0
	}
	return n
}
