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
		if call, ok := currentCall(pid, tid); ok && traits[call]&borrowable != 0 {
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
	s, err := procid.ReadThread(pid, tid)
	return err == nil && s.State == 'R'
}
