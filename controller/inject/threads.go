// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// maxCandidates bounds how many threads are looked at in one round.
const maxCandidates = 64

// candidates lists threads to try, those first that block in a system call
// which can be restarted as if nothing had been.
func candidates(pid int) ([]int, error) {
	tids, err := procid.Threads(pid)
	if err != nil {
		return nil, err
	}
	var blocked, others []int
	for _, tid := range tids {
		if call, ok := currentCall(pid, tid); ok && blocking[call] {
			blocked = append(blocked, tid)
		} else {
			others = append(others, tid)
		}
		if len(blocked) >= maxCandidates {
			break
		}
	}
	all := slices.Concat(blocked, others)
	return all[:min(len(all), maxCandidates)], nil
}

// currentCall tells which system call a thread sleeps in.
func currentCall(pid, tid int) (number int64, ok bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return 0, false
	}
	word, _, _ := strings.Cut(string(content), " ")
	number, err = strconv.ParseInt(word, 10, 64)
	return number, err == nil && number >= 0
}

// signalPending says whether a signal waits that the thread would take.
func signalPending(pid, tid int, blocked uint64) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return false
	}
	var pending uint64
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		if name == "SigPnd" || name == "ShdPnd" {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err == nil {
				pending |= set
			}
		}
	}
	return pending&^blocked != 0
}

// innerID is [procid.InnerID], or the id as we have it if that is not known.
func innerID(pid, tid int) int {
	if inner, err := procid.InnerID(pid, tid); err == nil {
		return inner
	}
	return tid
}

// outerID is the opposite; 0 if there is no such thread.
func outerID(pid, inner int) int {
	if innerID(pid, inner) == inner && exists(pid, inner) {
		return inner
	}
	tids, err := procid.Threads(pid)
	if err != nil {
		return 0
	}
	for _, tid := range tids {
		if innerID(pid, tid) == inner {
			return tid
		}
	}
	return 0
}

func exists(pid, tid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
	return err == nil
}

// runnable says whether a thread runs, or would if it had a processor.
func runnable(pid, tid int) bool {
	s, err := statusOf(pid, tid)
	return err == nil && s.state == 'R'
}

// signalSet is a line of a thread's status.
func signalSet(pid, tid int, name string) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, procid.GoneError(err)
	}
	for line := range strings.Lines(string(content)) {
		if set, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		}
	}
	return 0, fmt.Errorf("status of thread %d without %s", tid, name)
}
