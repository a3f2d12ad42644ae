// SPDX-License-Identifier: Apache-2.0

// Package cgroup finds the control groups of processes, of both versions, and how
// much memory and which CPUs they leave. Safe for concurrent use.
package cgroup

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// Texts reads what the directories of a process' cgroups are found from: its /proc/PID/cgroup
// and /proc/self/mountinfo. A process that is gone gives procid.ErrGone.
func Texts(pid int) (membership, mountinfo string, err error) {
	membership, mountinfo, err = texts(procid.Path(pid, "cgroup"))
	return membership, mountinfo, procid.GoneError(err)
}

func texts(path string) (membership, mountinfo string, err error) {
	own, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return string(own), string(mounts), err
}

// Path finds the path of a process' cgroup in the text of /proc/PID/cgroup, in
// the hierarchy that has a controller; controller "" is version 2.
func Path(membership, controller string) (string, bool) {
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || controller == "" && parts[0] != "0" {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == controller {
				return parts[2], true
			}
		}
	}
	return "", false
}

// Dir finds the directory of a path from the text of /proc/self/mountinfo.
func Dir(mountinfo, controller, path string) (string, bool) {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(system) < 3 {
			continue
		}
		options := "," + system[2] + ","
		if controller == "" && system[0] != "cgroup2" ||
			controller != "" && (system[0] != "cgroup" || !strings.Contains(options, ","+controller+",")) {
			continue
		}
		root, point := strings.TrimSuffix(unescape(mount[3]), "/"), unescape(mount[4])
		if below, ok := strings.CutPrefix(path, root); ok && (below == "" || below[0] == '/') && !strings.HasPrefix(below, "/..") {
			return filepath.Join(point, below), true
		}
	}
	return "", false
}

// unescape undoes mountinfo's octal writing of blanks.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
