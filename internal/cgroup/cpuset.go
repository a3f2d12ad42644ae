// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strings"
)

// CPUs returns the CPUs, as a list such as "0-3,8", that the cgroups of a process
// leave to it and that are online, from the texts of its /proc/PID/cgroup and of
// /proc/self/mountinfo; empty: no cpuset that can be seen from here limits it.
func CPUs(membership, mounts string) string {
	hierarchy, files := "cpuset", []string{"cpuset.effective_cpus", "cpuset.cpus"}
	path, found := Path(membership, hierarchy)
	if !found {
		hierarchy, files = "", []string{"cpuset.cpus.effective"}
		path, _ = Path(membership, hierarchy)
	}
	for path != "" {
		dir, found := Dir(mounts, hierarchy, path)
		if !found {
			break
		}
		for _, file := range files {
			if data, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				if list := strings.TrimSpace(string(data)); list != "" {
					return list
				}
			}
		}
		if path == "/" {
			break
		}
		// In version 2 only cgroups for which it was enabled have the files; the
		// others have what the one above has.
		path = filepath.Dir(path)
	}
	return ""
}
