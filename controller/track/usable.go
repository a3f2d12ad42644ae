// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// usableFor is how long what was read about a cpuset is taken to hold.
	usableFor = 5 * time.Second
	// maxUsable bounds the cgroups that are remembered.
	maxUsable = 1024
)

// usableCPUs knows which CPUs the processes could be given. The processes of a
// job share their cgroup, and so what is remembered. Not safe for concurrent use.
type usableCPUs struct {
	known map[string]usableEntry // by the text of /proc/PID/cgroup
}

type usableEntry struct {
	list  string
	until time.Time
}

// of returns the CPUs of a process as a list; empty if they cannot be read.
func (u *usableCPUs) of(pid int) string {
	membership, err := procid.ReadFile(pid, "cgroup", maxCgroupBytes)
	if err != nil {
		return ""
	}
	now := time.Now()
	if e, ok := u.known[string(membership)]; ok && now.Before(e.until) {
		return e.list
	}
	if u.known == nil || len(u.known) >= maxUsable {
		u.known = map[string]usableEntry{}
	}
	e := usableEntry{readUsable(string(membership)), now.Add(usableFor)}
	u.known[string(membership)] = e
	return e.list
}

// readUsable is the controller's own CPUs, of them those that a cpuset leaves.
func readUsable(membership string) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	own, err := procid.Affinity(os.Getpid())
	if err != nil {
		return ""
	}
	if list := cgroup.CPUs(membership, string(mounts)); list != "" {
		left, err := cpulist.Parse(list)
		if err != nil {
			return ""
		}
		own = cpulist.Intersect(own, left)
	}
	return cpulist.Format(own)
}
