package results

import (
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func files(content map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range content {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestHostFromFiles(t *testing.T) {
	h := hostFrom(files(map[string]string{
		"proc/sys/kernel/osrelease": "6.1.0-18\n",
		"proc/cpuinfo":              "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 3 GHz\n",
		"proc/meminfo":              "MemTotal:       16384 kB\nMemFree: 1 kB\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
	}))
	require.Equal(t, Host{Kernel: "6.1.0-18", CPUModel: "Some CPU @ 3 GHz", MemoryBytes: 16 << 20, ClockSource: "tsc"}, h)
	require.Equal(t, Host{}, hostFrom(files(nil)), "nothing known is no failure")
}

func TestPassingHosts(t *testing.T) {
	for _, c := range []struct {
		about, hostname string
		env             map[string]string
		want            string
	}{
		{"a machine with a name", "bench-01", nil, ""},
		{"a name that only looks like hexadecimal", "deadbeef", nil, ""},
		{"docker's default", "3f2a90c1b7de", nil, "a container named by its id"},
		{"GitHub's own runner", "fv-az123-4", map[string]string{"RUNNER_ENVIRONMENT": "github-hosted"}, "a hosted runner of GitHub's"},
		{"a runner of one's own at GitHub", "bench-01", map[string]string{"RUNNER_ENVIRONMENT": "self-hosted"}, ""},
		{"a GitLab job in docker", "runner-abc1-project-42-concurrent-0", map[string]string{"GITLAB_CI": "true"}, "a container of a GitLab job"},
		{"a GitLab job on a machine's shell", "bench-01", map[string]string{"GITLAB_CI": "true"}, ""},
		{"a pod", "load-5d9c7-x2x", map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "a pod of Kubernetes"},
	} {
		t.Run(c.about, func(t *testing.T) {
			require.Equal(t, c.want, passing(c.hostname, func(name string) string { return c.env[name] }))
		})
	}
}

func TestCgroupLimits(t *testing.T) {
	for _, c := range []struct {
		about string
		files map[string]string
		want  limits
	}{
		{"no control groups", nil, limits{}},
		{"version 2, own group", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, limits{1.5, 1 << 30}},
		{"version 2, the group around it is tighter", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, limits{0.5, 0}},
		{"version 2, in a container that sees the host's path", map[string]string{"proc/self/cgroup": "0::/kubepods/x\n", "sys/fs/cgroup/cpu.max": "200000 100000\n", "sys/fs/cgroup/memory.max": "max\n"}, limits{2, 0}},
		{"version 1", map[string]string{"proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/\n", "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "4096\n"}, limits{3, 4096}},
		{"version 1, unlimited", map[string]string{"proc/self/cgroup": "5:memory:/\n4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, limits{}},
		{"nonsense", map[string]string{"proc/self/cgroup": "x\n0::../../..\n", "sys/fs/cgroup/cpu.max": "1 0\n", "sys/fs/cgroup/memory.max": "lots\n"}, limits{}},
	} {
		t.Run(c.about, func(t *testing.T) {
			require.Equal(t, c.want, cgroupLimits(files(c.files)))
		})
	}
}

func TestHostTicks(t *testing.T) {
	all, idle, stolen := hostTicks(files(map[string]string{"proc/stat": "cpu  10 20 30 40 50 60 70 8 9 1\ncpu0 1\n"}))
	require.EqualValues(t, 288, all)
	require.EqualValues(t, 90, idle, "idle and waiting for a disk")
	require.EqualValues(t, 8, stolen)
	for _, bad := range []string{"", "cpu 1 2\n", "cpu a b c d e f g h\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
		all, idle, stolen = hostTicks(files(map[string]string{"proc/stat": bad}))
		require.Zero(t, all+idle+stolen, bad)
	}
}

func TestResidentBytes(t *testing.T) {
	require.EqualValues(t, 20480, residentBytes(files(map[string]string{"proc/self/statm": "100 5 3 1 0 9 0\n"}), 4096), "the second field, in pages")
	for _, bad := range []string{"", "100", "100 x 3", "100 -5 3", "100 9223372036854775807 3"} {
		require.Zero(t, residentBytes(files(map[string]string{"proc/self/statm": bad}), 4096), bad)
	}
	require.Zero(t, residentBytes(files(nil), 4096), "a system without it")
	if runtime.GOOS != "linux" {
		return
	}
	before := ResidentBytes()
	require.Positive(t, before)
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	require.Greater(t, ResidentBytes(), before+32<<20, "what is touched is resident")
	runtime.KeepAlive(held)
}

func TestHostInfo(t *testing.T) {
	h := HostInfo()
	require.NotEmpty(t, h.OS)
	require.Positive(t, h.CPUs)
	require.Positive(t, h.ClockReadNs)
	if runtime.GOOS == "linux" {
		require.NotEmpty(t, h.Kernel)
		require.Positive(t, h.MemoryBytes)
	}
}

func TestUsageSince(t *testing.T) {
	before := ReadUsage()
	var sink [][]byte
	for before.At.Add(20 * time.Millisecond).After(time.Now()) {
		sink = append(sink, make([]byte, 1<<16))
	}
	runtime.GC()
	runtime.GC()
	runtime.KeepAlive(sink)
	after := ReadUsage()
	g := after.Since(before)
	require.Positive(t, g.CPUCores)
	require.Positive(t, after.CPUSince(before))
	require.GreaterOrEqual(t, g.AllocBytes, int64(len(sink))<<16)
	require.GreaterOrEqual(t, g.AllocObjects, int64(len(sink)))
	require.GreaterOrEqual(t, g.GCCycles, int64(2))
	require.Positive(t, g.GCPauseMaxNs)
	require.LessOrEqual(t, g.GCPauseMaxNs, g.GCPauseTotalNs)
	require.Positive(t, g.MaxRSSBytes)
	require.Positive(t, g.CPUAvailable)
	require.GreaterOrEqual(t, g.StolenShare, 0.0)
	none := after.Since(after)
	require.Zero(t, none.GCPauseMaxNs)
	require.Zero(t, none.CPUCores)
}

func TestLongestPauseWhenHistoryIsTooShort(t *testing.T) {
	edges := []float64{0, 1e-6, 1e-5, 1e-4}
	before := Usage{counts: []uint64{1, 2, 9}, boundary: edges}
	after := Usage{GCCycles: 300, counts: []uint64{5, 3, 9}, boundary: edges}
	require.Equal(t, 10*time.Microsecond, after.longestPause(before), "the bucket of 100 µs had no new pause")
}
