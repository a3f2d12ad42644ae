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
	for dir, unified := range upwards(membership, mounts, "cpuset") {
		files := []string{"cpuset.effective_cpus", "cpuset.cpus"}
		if unified { // only cgroups for which it was enabled have the file; the others have what the one above has
			files = []string{"cpuset.cpus.effective"}
		}
		for _, file := range files {
			if data, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				if list := strings.TrimSpace(string(data)); list != "" {
					return list
				}
			}
		}
	}
	return ""
}
