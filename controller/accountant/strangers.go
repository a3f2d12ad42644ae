// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// strangers are the processes below this one that are none of the command's: whoever executed this
// process had started them, or they have started each other since. They become children of this
// process when they lose their parents. One whose parent has ended since the last look at the
// strangers, in which it was started, is not known for one.
type strangers struct {
	known map[int]stranger // by id
	next  time.Time        // when they are looked at again
}

// stranger is one of them.
type stranger struct {
	start uint64 // ticks since boot
	// child says that it was this process's from the beginning: somebody here may wait for it.
	child bool
}

func newStrangers() strangers {
	s := strangers{known: make(map[int]stranger)}
	for _, pid := range childrenOf(os.Getpid()) {
		if stat, err := procid.ReadStat(pid); err == nil {
			s.known[pid] = stranger{stat.StartTicks, true}
		}
	}
	s.follow()
	return s
}

// strangersShare is what part of a CPU's time may be spent with looking at them, as a divisor.
const strangersShare = 50

// follow adds what the strangers have started, and forgets those that are gone.
func (s *strangers) follow() {
	runtime.LockOSThread() // for its CPU time
	defer runtime.UnlockOSThread()
	begun, worked := time.Now(), clock.Thread()
	if begun.Before(s.next) {
		return
	}
	for todo := slices.Collect(maps.Keys(s.known)); len(todo) > 0; todo = todo[1:] {
		parent := todo[0]
		children := childrenOf(parent)
		if stat, err := procid.ReadStat(parent); err != nil || !s.has(stat) { // another one may have its id
			delete(s.known, parent)
			continue
		}
		for _, pid := range children {
			if stat, err := procid.ReadStat(pid); err == nil && stat.ParentPID == parent && !s.has(stat) {
				s.known[pid] = stranger{start: stat.StartTicks}
				todo = append(todo, pid)
			}
		}
	}
	s.next = begun.Add(strangersShare * (clock.Thread() - worked))
}

// has says whether a process is a stranger.
func (s *strangers) has(stat procid.Stat) bool {
	known, is := s.known[stat.PID]
	return is && known.start == stat.StartTicks
}

// adopted says whether a stranger became a child of this process when it lost its parent: nobody else
// waits for it.
func (s *strangers) adopted(stat procid.Stat) bool { return s.has(stat) && !s.known[stat.PID].child }

// childrenOf are the children of a process, of all its threads.
func childrenOf(pid int) (list []int) {
	tids, _ := procid.Threads(pid) // none of a process that has ended
	for _, tid := range tids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid)) // none of a thread that has ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
