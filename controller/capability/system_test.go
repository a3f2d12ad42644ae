// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// fixture makes a root directory with these files.
func fixture(t *testing.T, files map[string]string) *node {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newNode(Options{root: root})
}

func TestSystemProbes(t *testing.T) {
	const tsc = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	const both = "24 1 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n25 1 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"26 1 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	tests := []struct {
		name  string
		look  func(*node) finding
		files map[string]string
		want  finding
	}{
		{"lockdown none", lockdown, map[string]string{"/sys/kernel/security/lockdown": "[none] integrity confidentiality\n"},
			available("not locked down")},
		{"lockdown integrity", lockdown, map[string]string{"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"},
			finding{state: Degraded, detail: "integrity"}},
		{"lockdown confidentiality", lockdown, map[string]string{"/sys/kernel/security/lockdown": "none integrity [confidentiality]\n"},
			finding{state: Degraded, detail: "confidentiality"}},
		{"lockdown unknown", lockdown, nil, finding{state: Degraded}},
		{"lockdown garbled", lockdown, map[string]string{"/sys/kernel/security/lockdown": "none"}, finding{state: Degraded, detail: "none"}},
		{"schedstat", schedulerStatistics, map[string]string{"/proc/self/schedstat": "123456 789 10\n"}, available("")},
		{"schedstat of zeros", schedulerStatistics, map[string]string{"/proc/self/schedstat": "0 0 5\n"}, finding{state: Unavailable}},
		{"schedstat garbled", schedulerStatistics, map[string]string{"/proc/self/schedstat": "x\n"}, finding{state: Unavailable}},
		{"no schedstat", schedulerStatistics, nil, finding{state: Unavailable}},
		{"clock tsc", clockSource, map[string]string{tsc: "tsc\n", "/proc/cpuinfo": "processor : 0\nflags\t\t: fpu constant_tsc nonstop_tsc\n"},
			available("clock source tsc, constant_tsc, nonstop_tsc")},
		{"clock hpet", clockSource, map[string]string{tsc: "hpet\n", "/proc/cpuinfo": "flags : constant_tsc nonstop_tsc\n"},
			finding{state: Degraded, detail: "clock source hpet"}},
		{"clock hpet that stops when idle", clockSource, map[string]string{tsc: "hpet\n", "/proc/cpuinfo": "flags : constant_tsc\n"},
			finding{state: Degraded, detail: "clock source hpet"}},
		{"clock uneven", clockSource, map[string]string{tsc: "tsc\n", "/proc/cpuinfo": "flags : fpu tsc\n"},
			finding{state: Degraded, detail: "clock source tsc"}},
		{"clock that stops when idle", clockSource, map[string]string{tsc: "tsc\n", "/proc/cpuinfo": "flags : constant_tsc\n"},
			finding{state: Degraded, detail: "clock source tsc"}},
		{"clock unknown", clockSource, nil, finding{state: Unavailable}},
		{"cgroup 2", controlGroups, map[string]string{
			"/proc/self/cgroup":                     "0::/job\n",
			"/proc/self/mountinfo":                  "26 1 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/job/cgroup.controllers": "cpu memory\n",
			"/sys/fs/cgroup/job/cgroup.procs":       "",
		}, available("version 2: cpu memory")},
		{"cgroup both", controlGroups, map[string]string{
			"/proc/self/cgroup":                         "3:memory:/a\n2:cpu:/\n1:name=systemd:/\n0::/\n",
			"/proc/self/mountinfo":                      both,
			"/sys/fs/cgroup/cpu/cgroup.procs":           "",
			"/sys/fs/cgroup/unified/cgroup.controllers": "\n",
		}, available("version 1: cpu memory; version 2: no controllers")},
		{"cgroup of a container, by its path on the node", controlGroups, map[string]string{
			"/proc/self/cgroup":                       "2:cpu,cpuacct:/docker/x\n",
			"/proc/self/mountinfo":                    "24 1 0:21 /docker/x /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
			"/sys/fs/cgroup/cpu,cpuacct/cgroup.procs": "",
		}, available("version 1: cpu,cpuacct")},
		{"cgroup not writable", controlGroups, map[string]string{"/proc/self/cgroup": "3:memory:/a\n", "/proc/self/mountinfo": both},
			finding{state: Degraded, detail: "version 1: memory"}},
		{"cgroup not mounted", controlGroups, map[string]string{"/proc/self/cgroup": "0::/\n"}, finding{state: Unavailable}},
		{"no cgroup", controlGroups, nil, finding{state: Unavailable}},
		{"types", kernelTypes, map[string]string{typesFile: "\x9f\xeb\x01\x00"}, available("0 KiB")},
		{"no types", kernelTypes, nil, finding{state: Unavailable}},
		{"types garbled", kernelTypes, map[string]string{typesFile: "BTF"}, finding{state: Unavailable}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.look(fixture(t, test.files))
			if got.state != test.want.state || got.detail != test.want.detail {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if (got.reason == "") != (got.state == Available) {
				t.Errorf("reason %q of what is %s", got.reason, got.state)
			}
		})
	}
}

func TestYama(t *testing.T) {
	ptracer := confine.Capabilities(1 << unix.CAP_SYS_PTRACE)
	tests := []struct {
		name  string
		scope string
		held  confine.Capabilities
		want  State
	}{
		{"absent", "", 0, Available},
		{"off", "0\n", 0, Available},
		{"descendants", "1\n", 0, Degraded},
		{"descendants, privileged", "1\n", ptracer, Available},
		{"administrators", "2\n", 0, Unavailable},
		{"administrators, privileged", "2\n", ptracer, Available},
		{"nobody", "3\n", ptracer, Unavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			if test.scope != "" {
				files["/proc/sys/kernel/yama/ptrace_scope"] = test.scope
			}
			n := fixture(t, files)
			n.held = test.held
			if got := yama(n, available("")); got.state != test.want {
				t.Errorf("%+v, want %s", got, test.want)
			}
			failed := unavailable("other reason", "")
			if got := yama(n, failed); got != failed {
				t.Errorf("%+v hides %+v", got, failed)
			}
		})
	}
}
