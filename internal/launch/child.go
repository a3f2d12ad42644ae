// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"log/slog"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// Child is a started program.
type Child struct {
	// Path is the file that was executed.
	Path string
	// Started is the time just before its start.
	Started time.Time
	// InGroup says whether it began in Command.Group.
	InGroup bool

	pid     int
	signals *Signals
	group   group
	// stopping, continued and ended are the Command's; may be nil.
	stopping, continued, ended func()
	log                        *slog.Logger
}

// Exit is how a program ended.
type Exit struct {
	// Code is its exit code, when Signal is 0.
	Code int
	// Signal killed it, if not 0.
	Signal syscall.Signal
	// Wall is how long it ran.
	Wall time.Duration
	// Rusage is its own and its waited-for children's use of resources.
	Rusage unix.Rusage
}

// PID is the program's process id. It stays valid until Wait has returned.
// It is safe for concurrent use.
func (c *Child) PID() int { return c.pid }

// Wait passes signals on, follows stops and continues, and returns when the
// program has ended. Signals stay caught.
func (c *Child) Wait() Exit {
	defer c.group.close()
	look, changed := make(chan struct{}, 1), make(chan struct{})
	go c.watch(look, changed)
	defer close(look)
	look <- struct{}{}
	for {
		select {
		case sig := <-c.signals.caught:
			c.relay(sig.(syscall.Signal))
		case <-changed:
			if exit, ended := c.collect(); ended {
				return exit
			}
			look <- struct{}{}
		}
	}
}

// watch reports once per look that the program has stopped or ended, and
// leaves the status where it is: as long as only Wait collects it, and only
// Wait sends signals, no signal can hit a recycled process id.
func (c *Child) watch(look <-chan struct{}, changed chan<- struct{}) {
	for range look {
		for !c.changed() {
		}
		changed <- struct{}{}
	}
}

// tracedPause is how long a tracer's stop is left alone.
const tracedPause = 200 * time.Microsecond

// changed waits for a change of state. False for one that is not the program's
// own: a thread of this process may trace it, and the kernel shows the stops of
// a traced child to whatever thread of its parent waits.
func (c *Child) changed() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
	if err == nil && info.Code == cldTrapped {
		time.Sleep(tracedPause)
		return false
	}
	return err != unix.EINTR
}

// cldTrapped is CLD_TRAPPED of <bits/siginfo-consts.h>.
const cldTrapped = 4

// collect takes the program's status and stops with it if it has stopped.
func (c *Child) collect() (Exit, bool) {
	var (
		status unix.WaitStatus
		exit   Exit
	)
	if c.ended != nil && state(c.pid) == 'Z' {
		c.ended()
	}
	pid, err := unix.Wait4(c.pid, &status, unix.WUNTRACED|unix.WNOHANG, &exit.Rusage)
	switch {
	case err == unix.EINTR || err == nil && pid == 0:
		return Exit{}, false // continued or interrupted meanwhile
	case err == nil && status.Stopped() && traced(status):
		return Exit{}, false // begun since watch looked
	case err != nil:
		// Only possible if somebody else reaps our children.
		c.log.Error("the program's exit status was lost", "error", err)
		exit.Code = 255
	case status.Stopped():
		c.stopToo(status.StopSignal())
		return Exit{}, false
	case status.Signaled():
		exit.Signal = status.Signal()
	default:
		exit.Code = status.ExitStatus()
	}
	exit.Wall = time.Since(c.Started)
	return exit, true
}

// traced says whether a stop is a tracer's: PTRACE_SEIZE marks all of them by
// an event, but for system calls and steps, which stop by SIGTRAP.
func traced(status unix.WaitStatus) bool {
	return status>>16 != 0 || status.StopSignal()&^0x80 == unix.SIGTRAP
}

// relay passes a signal on unless the program has got it already.
func (c *Child) relay(sig syscall.Signal) {
	switch {
	case sig == syscall.SIGPIPE: // raised by our own writes
	case sig == syscall.SIGCONT && stopped(c.pid):
		c.send(sig)
	case !c.group.got(sig):
		c.send(sig)
	}
}

func (c *Child) send(sig syscall.Signal) {
	if err := unix.Kill(c.pid, sig); err != nil {
		c.log.Debug("pass signal on", "signal", sig, "error", err)
	}
}

// stopped tells whether a process is stopped by job control.
func stopped(pid int) bool { return state(pid) == 'T' }

// state is the state letter of a process, 0 if there is none: of another thread, if the first
// one has ended before the others.
func state(pid int) byte {
	stat, err := procid.ReadStat(pid)
	if live := procid.LiveThread(pid, stat); err == nil && live != pid {
		stat, _ = procid.ReadThreadStat(pid, live) // zero if it has ended meanwhile
	}
	return stat.State
}
