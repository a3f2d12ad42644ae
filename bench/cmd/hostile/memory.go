// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/packaging/systemd"
)

// Kinds of processes of the services, in the order in which they are shown.
const (
	kindAttuned  = "attuned"
	kindSession  = "a session's process"
	kindHelper   = "a helper that reads"
	kindAnalyzer = "Analyzer"
	kindTunlets  = "a process of tunlets"
	unitAttuned  = "attuned's unit"
	unitAnalyzer = "the Analyzer's unit"
)

// use is the most memory that a process of a kind had, and what it may have, MB, how many
// of them there were at a time, and the processor time that all took while there were
// attacks, seconds.
type use struct {
	Most    float64 `json:"most_mb"`
	Limit   float64 `json:"limit_mb"`
	Count   int     `json:"at_a_time"`
	Seconds float64 `json:"processor_seconds"`
}

// weigher looks at the memory of a site's processes until stop is closed.
type weigher struct {
	site     *site
	uses     map[string]use
	attacked func() bool
	ticks    map[int]uint64 // of each process, when it was seen last
	beside   time.Duration  // there were attacks
	stop     chan struct{}
	done     chan struct{}
}

func (s *site) weigh(uses map[string]use, attacked func() bool) *weigher {
	w := &weigher{
		site: s, uses: uses, attacked: attacked, ticks: make(map[int]uint64),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// end returns when it looks no more, and for how long there were attacks, seconds.
func (w *weigher) end() float64 {
	close(w.stop)
	<-w.done
	return w.beside.Seconds()
}

func (w *weigher) run() {
	defer close(w.done)
	last := time.Now()
	for tick := time.NewTicker(250 * time.Millisecond); ; {
		w.look()
		now := time.Now()
		if w.attacked() {
			w.beside += now.Sub(last)
		}
		last = now
		select {
		case <-w.stop:
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

func (w *weigher) look() {
	children := childrenOf()
	counts := make(map[string]int)
	var walk func(pid int, kind string) (own float64)
	walk = func(pid int, kind string) (own float64) {
		counts[kind]++
		w.note(pid, kind)
		w.noteTime(pid, kind)
		own, _ = sizeIn(procid.Path(pid, "status"), "RssAnon") // it may have ended
		for _, child := range children[pid] {
			own += walk(child, kindOf(child, kind))
		}
		return own
	}
	w.noteUnit(unitAttuned, systemd.Attuned, walk(w.site.attuned.Process.Pid, kindAttuned))
	w.noteUnit(unitAnalyzer, systemd.Analyzer, walk(w.site.analyzer.Process.Pid, kindAnalyzer))
	for kind, n := range counts {
		u := w.uses[kind]
		u.Count = max(u.Count, n)
		w.uses[kind] = u
	}
}

// noteUnit notes what all processes of a unit have together beside its limit.
func (w *weigher) noteUnit(name, text string, own float64) {
	w.uses[name] = use{Most: max(own, w.uses[name].Most), Limit: unitLimit(text), Count: 1}
}

// noteTime adds the processor time that a process has taken since it was seen last.
func (w *weigher) noteTime(pid int, kind string) {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return // it has ended
	}
	now := stat.UserTicks + stat.SystemTicks
	if u := w.uses[kind]; w.attacked() {
		u.Seconds += float64(now-min(now, w.ticks[pid])) / procid.TicksPerSecond
		w.uses[kind] = u
	}
	w.ticks[pid] = now
}

// kindOf says what a child of one of a kind is.
func kindOf(pid int, parent string) string {
	line, _ := os.ReadFile(procid.Path(pid, "cmdline"))
	switch {
	case parent == kindAnalyzer || parent == kindTunlets:
		return kindTunlets
	case bytes.Contains(line, []byte(readers.Argument)):
		return kindHelper
	}
	return kindSession
}

// note notes the memory of a process: of a daemon beside the limit of its unit, of
// others beside their own.
func (w *weigher) note(pid int, kind string) {
	most, err := sizeIn(procid.Path(pid, "status"), "VmHWM")
	if err != nil {
		return // it has ended
	}
	u := w.uses[kind]
	u.Most = max(u.Most, most)
	if u.Limit == 0 {
		switch kind {
		case kindAttuned:
			u.Limit = unitLimit(systemd.Attuned)
		case kindAnalyzer, kindTunlets: // which are in its unit
			u.Limit = unitLimit(systemd.Analyzer)
		default:
			u.Limit = dataLimit(pid)
		}
	}
	w.uses[kind] = u
}

// sizeIn reads a size from a file of /proc, MB.
func sizeIn(path, name string) (float64, error) {
	bytes, err := procid.ReadField(path, name)
	return float64(bytes) / (1 << 20), err
}

// unitLimit is MemoryMax of a unit, MB.
func unitLimit(text string) float64 {
	_, rest, _ := strings.Cut(text, "\nMemoryMax=")
	value, _, _ := strings.Cut(rest, "\n")
	if percent, is := strings.CutSuffix(value, "%"); is {
		share, _ := strconv.ParseFloat(percent, 64) // 0 is no limit, and seen
		total, _ := sizeIn("/proc/meminfo", "MemTotal")
		return total * share / 100
	}
	giga, _ := strconv.ParseFloat(strings.TrimSuffix(value, "G"), 64)
	return giga * 1024
}

// dataLimit is what a process may have by its own limit, MB; 0: none.
func dataLimit(pid int) float64 {
	// prlimit(2) asks for CAP_SYS_RESOURCE where the process is another user's.
	text, _ := os.ReadFile(procid.Path(pid, "limits")) // it may have ended
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(line, "Max data size") {
			limit, _ := strconv.ParseFloat(fields[3], 64) // unlimited: 0
			return limit / (1 << 20)
		}
	}
	return 0
}

// childrenOf lists all processes by their parents.
func childrenOf() map[int][]int {
	children := make(map[int][]int)
	pids, _ := procid.List()
	for _, pid := range pids {
		if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() {
			children[stat.ParentPID] = append(children[stat.ParentPID], pid)
		}
	}
	return children
}

// traces is what the services leave on a machine: processes, mounts, control groups,
// shared memory.
func (f folder) traces() (all []string) {
	for _, pids := range childrenOf() {
		for _, pid := range pids {
			if path := procid.Executable(pid); strings.HasPrefix(path, f.dir) {
				all = append(all, fmt.Sprintf("process %d, %s", pid, path))
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, f.dir) {
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*attune*", "/sys/fs/cgroup/*/*attune*", "/dev/shm/*attune*", f.path("run/gates/*")} {
		paths, _ := filepath.Glob(pattern)
		all = append(all, paths...)
	}
	slices.Sort(all)
	return all
}
