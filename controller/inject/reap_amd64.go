// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"time"

	"golang.org/x/sys/unix"
)

// seizePatience is how long taking hold of a thread lasts at most, unless the
// process is in execve(2).
const seizePatience = 5 * time.Millisecond

// reaper takes the end of threads in the place of an OS thread that cannot: one
// that waits in the kernel to take hold of another thread. That waits for an
// execve(2) of the process, and execve waits until the end of all its other
// threads has been taken, by their tracer. Any thread of the tracer's process
// may take it.
type reaper struct {
	done, ended chan struct{}
	taken       []int // threads whose end was taken; to be read after stop
}

// reapMeanwhile begins to do so, after some milliseconds, for traced threads.
func reapMeanwhile(tids []int) *reaper {
	r := &reaper{done: make(chan struct{}), ended: make(chan struct{})}
	go r.run(tids)
	return r
}

// stop ends it, and returns the threads whose end was taken.
func (r *reaper) stop() []int {
	close(r.done)
	<-r.ended
	return r.taken
}

func (r *reaper) run(tids []int) {
	defer close(r.ended)
	ticks := time.NewTicker(seizePatience)
	defer ticks.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-ticks.C:
		}
		for _, tid := range tids {
			if hasEnded(tid) {
				r.taken = append(r.taken, tid)
			}
		}
	}
}

// hasEnded takes the end of a traced thread, if it has come.
func hasEnded(tid int) bool {
	var info childInfo
	err := unix.Waitid(unix.P_PID, tid, info.siginfo(), unix.WALL|unix.WNOHANG|unix.WEXITED|unix.WNOWAIT, nil)
	// A stop shows here as well.
	if err != nil || info.signal == 0 || info.code >= cldTrapped || ownChild(tid) {
		return false
	}
	return unix.Waitid(unix.P_PID, tid, nil, unix.WALL|unix.WNOHANG|unix.WEXITED, nil) == nil
}
