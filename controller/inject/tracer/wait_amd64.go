// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// stop is one ptrace stop.
type stop struct {
	signal unix.Signal
	event  int
}

// cldTrapped is the least code of a child that lives (<bits/siginfo-consts.h>).
const cldTrapped = 4

// childInfo is what waitid(2) fills in, in the place of a siginfo_t.
type childInfo struct {
	signal, _, code, _ int32
	pid, uid, status   int32
	_                  [100]byte
}

// siginfo is the same as x/sys/unix wants it.
func (c *childInfo) siginfo() *unix.Siginfo { return (*unix.Siginfo)(unsafe.Pointer(c)) }

// nextStatus is wait4(2) without waiting, for one thread (P_PID) or all that
// this OS thread traces (P_ALL), but that the end of a child of this very
// process is left for whoever started it: its status says no more than that.
// Thread 0: there is nothing new.
func nextStatus(kind, id int) (tid int, status unix.WaitStatus, err error) {
	options := unix.WALL | unix.WNOHANG
	if kind == unix.P_ALL {
		options |= unix.WNOTHREAD
	}
	var info childInfo
	err = unix.Waitid(kind, id, info.siginfo(), options|unix.WSTOPPED, nil)
	if errors.Is(err, unix.ECHILD) { // so it says too where all that is left has ended
		err = nil
	}
	if err != nil || info.signal != 0 {
		return int(info.pid), unix.WaitStatus(0x7f | uint32(info.status)<<8), err
	}
	err = unix.Waitid(kind, id, info.siginfo(), options|unix.WEXITED|unix.WNOWAIT, nil)
	// A stop that has come since shows here as well.
	if err != nil || info.signal == 0 || info.code >= cldTrapped {
		return 0, 0, err
	}
	if tid = int(info.pid); !ownChild(tid) {
		err = unix.Waitid(unix.P_PID, tid, nil, unix.WALL|unix.WNOHANG|unix.WEXITED, nil)
	}
	return tid, 0, err
}

// ownChild says whether a thread is the first one of a child of this process.
func ownChild(tid int) bool {
	s, err := procid.ReadStatus(tid)
	return err == nil && s.Process == tid && s.Parent == os.Getpid()
}

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
