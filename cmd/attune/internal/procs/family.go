// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/procid"
)

// table has the parent of each process, as they are when it is made.
type table map[int]int

func newTable() table {
	parents := make(table)
	for _, pid := range IDs() {
		if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() && !stat.Kernel {
			parents[pid] = stat.ParentPID
		}
	}
	return parents
}

// lineage are a process and its ancestors.
func (t table) lineage(pid int) (all []int) {
	for ; pid > 0 && !slices.Contains(all, pid); pid = t[pid] {
		all = append(all, pid)
	}
	return all
}

// Family returns processes with all that descends from them now, each once: those that
// were named first, in their order, then the others, ascending. This process and what
// descends from it are left out.
func Family(pids []int) []int { return newTable().family(pids, os.Getpid()) }

func (t table) family(pids []int, self int) []int {
	all := slices.Clone(pids)
	var more []int
	for pid := range t {
		line := t.lineage(pid)
		if !slices.Contains(line, self) && slices.ContainsFunc(line, func(p int) bool { return slices.Contains(pids, p) }) && !slices.Contains(pids, pid) {
			more = append(more, pid)
		}
	}
	slices.Sort(more)
	return append(all, more...)
}

// RefuseAll refuses the process that all others here descend from, this one too: who
// names it hardly means the whole machine.
func RefuseAll(pids []int) error {
	if !slices.Contains(pids, 1) || !slices.Contains(newTable().lineage(os.Getpid()), 1) {
		return nil
	}
	return exitcode.UsageError(errors.New("process 1 is what all processes of this machine descend from"),
		"name the process of a service (`systemctl show -p MainPID SERVICE`), or use --name PATTERN")
}

// Named lists the processes that a pattern (path.Match) names, by any name under which a
// person knows the program, ascending; of root all users', else this user's. This process and
// its ancestors are left out. Without any, or with those of several users, the error is one of usage.
func Named(pattern string) ([]int, error) {
	if _, err := path.Match(pattern, ""); err != nil || strings.Trim(pattern, "*") == "" {
		return nil, exitcode.UsageError(fmt.Errorf("--name %q: it must name some processes and not all", pattern), "give a name as ps shows it, such as postgres or 'nginx*'")
	}
	all := newTable()
	own := all.lineage(os.Getpid())
	look := NewReader()
	defer look.Close()
	var pids []int
	for pid := range all {
		owner, err := Owner(pid)
		if err == nil && (owner == os.Geteuid() || os.Geteuid() == 0) && !slices.Contains(own, pid) && look.isNamed(pid, pattern) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, exitcode.UsageError(fmt.Errorf("no process of yours is called %s", pattern), "`ps -e` shows names")
	}
	slices.Sort(pids)
	return pids, all.checkOwners(pattern, pids)
}

// checkOwners refuses processes of several users, but for those that descend from another one: anybody
// may give a program that name, and one session would judge changes for all of them by what theirs does.
func (t table) checkOwners(pattern string, pids []int) error {
	owners := make(map[int][]int)
	for _, pid := range pids {
		if line := t.lineage(pid); slices.ContainsFunc(line[1:], func(p int) bool { return slices.Contains(pids, p) }) {
			continue
		}
		// Not that of the directory in /proc: a process can have it be root's.
		if status, err := procid.ReadStatus(pid); err == nil { // else it has ended
			owners[int(status.Users.Real)] = append(owners[int(status.Users.Real)], pid)
		}
	}
	if len(owners) < 2 {
		return nil
	}
	var said []string
	for owner, list := range owners {
		said = append(said, fmt.Sprintf("%s (%s)", UserName(owner), strings.Trim(fmt.Sprint(list), "[]")))
	}
	slices.Sort(said)
	return exitcode.UsageError(fmt.Errorf("--name %q: processes of several users have that name: %s", pattern, strings.Join(said, ", ")), "name the processes of one user by their ids")
}

// isNamed says whether a pattern names a process.
func (r Reader) isNamed(pid int, pattern string) bool {
	names, err := ask(r, readNames, pid)
	if err != nil { // its memory does not answer
		names = plainNames(pid)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		ok, _ := path.Match(pattern, filepath.Base(name)) // the pattern was looked at
		return ok
	})
}

// plainNames are those that the kernel has.
func plainNames(pid int) (names []string) {
	if stat, err := procid.ReadStat(pid); err == nil {
		names = append(names, stat.Comm)
	}
	if path := procid.Executable(pid); path != "" {
		names = append(names, path)
	}
	return names
}
