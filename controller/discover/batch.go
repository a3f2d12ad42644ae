// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"maps"
	"path"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// Profile says by which of its daemons a batch system starts the processes of
// jobs. What descends from such a daemon is a job's.
type Profile struct {
	// Name of the batch system.
	Name string
	// Daemons by the base names that they were started by or that their
	// executables have, as path.Match has them.
	Daemons []string
	// Parent is the same of the program that must have started the daemon; "":
	// whichever.
	Parent string
}

// Profiles returns those of the batch systems that are known.
func Profiles() []Profile {
	return []Profile{
		{Name: "slurm", Daemons: []string{"slurmstepd*"}}, // Debian calls it slurmstepd-wlm
		{Name: "sge", Daemons: []string{"sge_shepherd*"}}, // Grid Engine, with or without a suffix
		{Name: "pbs", Daemons: []string{"pbs_mom"}},       // OpenPBS and Torque
		{Name: "htcondor", Daemons: []string{"condor_starter*"}},
		{Name: "lsf", Daemons: []string{"sbatchd", "res"}},
	}
}

// batchLookup finds out whether a batch system has started a process.
type batchLookup struct {
	profiles []Profile
	// known are processes of jobs, and when each was last met on a way up, or as
	// the leader of a session: the way is lost when a process on it ends.
	known map[key]time.Time
}

const (
	// maxGenerations bounds the way up.
	maxGenerations = 64
	// maxKnown bounds the processes that are remembered. Where there are more,
	// those go, down to half of it, that were met longest ago.
	maxKnown = 8192
)

// started says whether the process of that user descends from a daemon of a
// batch system. A program of the user's own that has the daemon's name is none.
func (b *batchLookup) started(pid int, uid uint32) bool {
	var way []key
	answer := false
	for range maxGenerations {
		stat, err := procid.ReadStat(pid)
		if err != nil || pid <= 1 {
			break
		}
		k := key{pid, stat.StartTicks}
		way = append(way, k)
		if _, known := b.known[k]; known || b.isDaemon(pid, stat, uid) {
			answer = true
			break
		}
		if leader, known := b.session(stat); known {
			way = append(way, leader)
			answer = true
			break
		}
		pid = stat.ParentPID
	}
	if answer {
		b.keep(way)
	}
	return answer
}

// session says whether the process is in the session of one that is known, and
// of which: so it is if the process between them has ended.
func (b *batchLookup) session(stat procid.Stat) (leader key, known bool) {
	if stat.Session == stat.PID {
		return key{}, false
	}
	first, err := procid.ReadStat(stat.Session)
	if err != nil {
		return key{}, false
	}
	leader = key{stat.Session, first.StartTicks}
	_, known = b.known[leader]
	return leader, known
}

// keep remembers the processes of a job.
func (b *batchLookup) keep(way []key) {
	now := time.Now()
	for _, k := range way {
		b.known[k] = now
	}
	if len(b.known) <= maxKnown {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(b.known), func(x, y key) int { return b.known[x].Compare(b.known[y]) })
	for _, k := range oldest[:len(oldest)-maxKnown/2] {
		delete(b.known, k)
	}
}

// isDaemon says whether the process is one that starts jobs. Anybody may give a
// program such a name, so it must be another user's than the job, or root's.
func (b *batchLookup) isDaemon(pid int, stat procid.Stat, uid uint32) bool {
	if !slices.ContainsFunc(b.profiles, func(p Profile) bool { return p.startedBy(pid, stat) }) {
		return false
	}
	owner, err := procid.UserID(pid)
	return err == nil && (owner == 0 || owner != uid)
}

func (p Profile) startedBy(pid int, stat procid.Stat) bool {
	if !slices.ContainsFunc(p.Daemons, func(pattern string) bool { return isCalled(pattern, pid, stat) }) {
		return false
	}
	if p.Parent == "" {
		return true
	}
	parent, err := procid.ReadStat(stat.ParentPID)
	return err == nil && isCalled(p.Parent, stat.ParentPID, parent)
}

// isCalled says whether a process was started by that name, of which the kernel
// keeps 15 bytes, or its executable has it. The two differ: Debian's slurmstepd
// is a link to slurmstepd-wlm.
func isCalled(pattern string, pid int, stat procid.Stat) bool {
	return matches(pattern[:min(len(pattern), maxComm)], stat.Comm) || matches(pattern, path.Base(procid.Executable(pid)))
}

// maxComm is the length of the kernel's names of processes.
const maxComm = 15

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
