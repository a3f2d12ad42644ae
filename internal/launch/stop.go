// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// wakerArg is the argv[0] of a waker.
const wakerArg = "attune-waker"

// wakerPeriod is how often a waker looks at a stopped program.
const wakerPeriod = 50 * time.Millisecond

// stopToo stops this process by the signal that stopped the program, so that
// the shell sees a stopped job, and returns when it is continued. A SIGCONT
// for us alone is then relayed like any signal.
//
// Somebody may continue (or kill) the program alone; stopped, we could not
// see it, and the job would hang at its end. So a waker looks meanwhile.
func (c *Child) stopToo(sig syscall.Signal) {
	waker, err := startWaker(c.pid)
	if err != nil {
		c.log.Warn("the program's stop is not shown to the shell", "error", err)
		return
	}
	if c.group.saw(sig) {
		c.absorb(sig)
	}
	if c.stopping != nil {
		c.stopping()
	}
	if err := raise(sig); err != nil {
		c.log.Warn("the program's stop is not shown to the shell", "error", err)
	}
	if c.continued != nil {
		c.continued()
	}
	byWaker := waker.close()
	switch {
	case !c.absorb(syscall.SIGCONT) || byWaker:
	case stopped(c.pid):
		c.send(syscall.SIGCONT) // only we were continued
	default:
		c.group.got(syscall.SIGCONT)
	}
}

// AnnounceStops calls stopping before the terminal's stop key stops this process, and
// continued afterwards, until ctx ends. It is for a process without a [Child].
func AnnounceStops(ctx context.Context, stopping, continued func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTSTP)
	defer setDisposition(syscall.SIGTSTP, disposition{}) //nolint:errcheck // it cannot fail for this one
	defer signal.Stop(caught)
	for {
		select {
		case <-caught:
			stopping()
			_ = raise(syscall.SIGTSTP) // at worst it goes on
			continued()
		case <-ctx.Done():
			return
		}
	}
}

// absorb takes one sig that must have been sent off the queue, relays what
// comes before it, and tells whether it came. It must not stay in the queue: a
// stop signal is wiped out in the witness by the next SIGCONT, and the other
// way round, so that later nobody could tell to whom it was sent.
func (c *Child) absorb(sig syscall.Signal) bool {
	late := time.NewTimer(100 * time.Millisecond)
	defer late.Stop()
	for {
		select {
		case got := <-c.signals.caught:
			if got == sig {
				return true
			}
			c.relay(got.(syscall.Signal))
		case <-late.C:
			return false
		}
	}
}

// waker is a process that continues us.
type waker struct {
	pid int
	// end is the write side of its standard input; closing it ends the waker.
	end *os.File
}

// startWaker starts this binary as a waker, in a group of its own so that
// nothing sent to the job reaches it.
func startWaker(program int) (*waker, error) {
	in, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	w := &waker{end: end}
	w.pid, err = syscall.ForkExec("/proc/self/exe", []string{wakerArg, strconv.Itoa(program)}, &syscall.ProcAttr{
		Files: []uintptr{in.Fd(), ^uintptr(0), ^uintptr(0)},
		Env:   []string{},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		end.Close()
		return nil, err
	}
	return w, nil
}

// close ends the waker, and tells whether it was the one who continued us.
func (w *waker) close() bool {
	w.end.Close()
	status, err := reap(w.pid)
	return err == nil && status.Exited() && status.ExitStatus() == 0
}

// IsWaker tells whether this process was started as a waker; main then does
// nothing but call Waker.
func IsWaker(args []string) bool { return len(args) == 2 && args[0] == wakerArg }

// Waker continues its stopped parent when the program is not stopped any more.
// It returns the exit code: 0 if it did, 1 if the parent ended it.
func Waker(args []string) int {
	procid.SetName(wakerArg)
	program, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	parent := unix.Getppid()
	input := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	for {
		if !stopped(program) && stopped(parent) && unix.Kill(parent, unix.SIGCONT) == nil {
			return 0
		}
		n, err := unix.Poll(input, int(wakerPeriod.Milliseconds()))
		if n > 0 || err != nil && err != unix.EINTR {
			return 1
		}
	}
}
