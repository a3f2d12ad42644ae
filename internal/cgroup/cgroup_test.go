// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"testing"

	"github.com/attune-hpc/attune/internal/cgroup"
)

func TestDir(t *testing.T) {
	const mounts = `24 1 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
25 1 0:22 /docker/x /sys/fs/cgroup/memory\040here rw shared:1 - cgroup cgroup rw,memory
26 1 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
27 1 0:23 short
`
	const membership = "4:cpu,cpuacct:/job/1\n3:memory:/docker/x/a\n2:name=systemd:/\n1:pids:/../other\n0::/user.slice\n"
	tests := []struct {
		name, controller, dir string
		found                 bool
	}{
		{"v1 with two controllers", "cpu", "/sys/fs/cgroup/cpu,cpuacct/job/1", true},
		{"mount of a subtree, blank in the path", "memory", "/sys/fs/cgroup/memory here/a", true},
		{"v2", "", "/sys/fs/cgroup/unified/user.slice", true},
		{"outside the namespace, not mounted", "pids", "", false},
		{"not there", "blkio", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, found := cgroup.Path(membership, tt.controller)
			dir := ""
			if found {
				dir, found = cgroup.Dir(mounts, tt.controller, path)
			}
			if dir != tt.dir || found != tt.found {
				t.Errorf("%q %v, want %q", dir, found, tt.dir)
			}
		})
	}
	if dir, found := cgroup.Dir(mounts, "memory", "/docker/xy"); found {
		t.Errorf("a sibling with a longer name is at %s", dir)
	}
	if dir, found := cgroup.Dir(mounts, "", "/../other"); found {
		t.Errorf("outside the namespace is at %s", dir)
	}
}
