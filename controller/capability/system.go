// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/clock"
)

// controlGroups reads which controllers govern this process, and whether its own
// group of one of them may be written.
func controlGroups(n *node) finding {
	text, err := n.read("/proc/self/cgroup")
	if err != nil {
		return unavailable("no control groups", "needs a kernel with CONFIG_CGROUPS")
	}
	mounts, _ := n.read("/proc/self/mountinfo") // "" has no group
	var old []string
	unified := ""
	writable := false
	for line := range strings.SplitSeq(text, "\n") {
		_, group, _ := strings.Cut(line, ":")
		controllers, path, _ := strings.Cut(group, ":")
		directory, mounted := cgroup.Dir(mounts, controllers, path)
		switch {
		case controllers == "":
			offered, err := n.read(filepath.Join(directory, "cgroup.controllers"))
			if !mounted || err != nil {
				continue
			}
			unified = "version 2: " + listOrNone(strings.Fields(offered))
		case strings.HasPrefix(controllers, "name="):
			continue // groups only, governs nothing
		default:
			old = append(old, controllers)
		}
		writable = writable || mounted && unix.Access(n.path(filepath.Join(directory, "cgroup.procs")), unix.W_OK) == nil
	}
	slices.Sort(old)
	var detail []string
	if len(old) > 0 {
		detail = append(detail, "version 1: "+strings.Join(old, " "))
	}
	if unified != "" {
		detail = append(detail, unified)
	}
	switch {
	case len(detail) == 0:
		return unavailable("no control group file system is mounted", "mount cgroup2 on /sys/fs/cgroup")
	case !writable:
		return degraded(strings.Join(detail, "; "), "own group may be read, not changed", "run as root, or have the group delegated (systemd: Delegate=yes)")
	}
	return available(strings.Join(detail, "; "))
}

func listOrNone(words []string) string {
	if len(words) == 0 {
		return "no controllers"
	}
	return strings.Join(words, " ")
}

const (
	lockdownFile = "/sys/kernel/security/lockdown"
	// confidentiality is lockdown in which even root may read nothing.
	confidentiality = "confidentiality"
)

// lockdownState is the chosen one of the states in a text, "" for none.
func lockdownState(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	state, _, closed := strings.Cut(rest, "]")
	if !closed {
		return ""
	}
	return state
}

const (
	confidential       = "the kernel is locked down: no program may read its memory"
	remedyConfidential = "boot with lockdown=integrity or none"
)

// isConfidential says whether the helpers that read memory are kept from
// programs; where that cannot be read, it is not known.
func (n *node) isConfidential() bool {
	text, err := n.read(lockdownFile)
	return err == nil && lockdownState(text) == confidentiality
}

// lockdown reads what the kernel keeps even from root.
func lockdown(n *node) finding {
	text, err := n.read(lockdownFile)
	if err != nil {
		return degraded("", lockdownFile+" cannot be read, so the state is not known", "mount -t securityfs securityfs /sys/kernel/security")
	}
	state := lockdownState(text)
	switch state {
	case "":
		return degraded(text, "state not understood", "")
	case "none":
		return available("not locked down")
	}
	const within = "DMLib changes the process from inside"
	if state == confidentiality {
		return degraded(state, "the kernel is locked down: BPF programs may not write registers or memory, nor read the kernel's", "not needed: "+within+", and the process connector tells of new processes")
	}
	return degraded(state, "the kernel is locked down: BPF programs may not write registers or memory", "not needed: "+within)
}

func schedulerStatistics(n *node) finding {
	text, err := n.read("/proc/self/schedstat")
	if err != nil {
		return unavailable("no /proc/self/schedstat", "needs a kernel with CONFIG_SCHED_INFO")
	}
	var ran, waited, slices uint64
	if _, err := fmt.Sscan(text, &ran, &waited, &slices); err != nil {
		return unavailable("/proc/self/schedstat is not understood", "")
	}
	if ran == 0 && slices > 1 {
		return unavailable("/proc/self/schedstat counts nothing", "needs a kernel with CONFIG_SCHED_INFO")
	}
	return available("")
}

// clockSource tells whether the time-stamp counter can be used for times: it must
// tick evenly and be the kernel's own choice.
func clockSource(n *node) finding {
	source, err := n.read(clock.CounterSource)
	if err != nil {
		return unavailable("no clock source can be read", "mount sysfs on /sys")
	}
	info, err := n.read("/proc/cpuinfo")
	if err != nil {
		return unavailable("no /proc/cpuinfo", "mount proc on /proc")
	}
	err = clock.JudgeCounter(source, info)
	switch {
	case errors.Is(err, clock.ErrUneven):
		return degraded("clock source "+source, err.Error(), "times of single calls are not exact on this processor")
	case err != nil:
		return degraded("clock source "+source, err.Error(), "choose tsc as the machine's clock source, where it is stable")
	}
	return available("clock source tsc, constant_tsc, nonstop_tsc")
}
