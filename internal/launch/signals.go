// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/inherit"
)

// queued is the capacity of the channel of caught signals; the kernel itself
// keeps only one of each standard signal.
const queued = 128

// Signals catches the signals that reach this process, so that it survives
// them for as long as the program runs.
type Signals struct {
	state  inherit.State
	caught chan os.Signal
	// own are those that say that a file of our own got too large (ulimit -f): the
	// write fails, and the program has not written. Nobody reads them.
	own chan os.Signal
}

// Catch takes over every signal that can be caught and means something to a
// program. Call it before anything is built.
func Catch(state inherit.State) *Signals {
	s := &Signals{state: state, caught: make(chan os.Signal, queued), own: make(chan os.Signal, 1)}
	signal.Notify(s.caught, catchable()...)
	signal.Notify(s.own, syscall.SIGXFSZ)
	return s
}

// AllowStop gives the stop signals their default action again. While the
// program runs, this process stops only with it; afterwards it is a program
// like others, which the terminal may stop when it writes from the background.
func (s *Signals) AllowStop() {
	for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if !s.state.Ignored.Has(sig) {
			_, _ = setDisposition(sig, disposition{}) // cannot fail for these
		}
	}
}

// Second returns a channel that is closed at the second terminating signal
// from now on. The first may be the one that ended the program, arriving late.
// The goroutine behind it ends with done.
func (s *Signals) Second(done <-chan struct{}) <-chan struct{} {
	second := make(chan struct{})
	go func() {
		seen := 0
		for seen < 2 {
			select {
			case sig := <-s.caught:
				if ends(sig.(syscall.Signal)) {
					seen++
				}
			case <-done:
				return
			}
		}
		close(second)
	}()
	return second
}

// pendingEnd returns a terminating signal that came before the program was
// started, or 0. It stops this process first if the terminal has asked for that.
func (s *Signals) pendingEnd() syscall.Signal {
	for {
		select {
		case caught := <-s.caught:
			sig := caught.(syscall.Signal)
			switch {
			case s.state.Ignored.Has(sig):
			case ends(sig):
				return sig
			case sig == syscall.SIGTSTP:
				_ = raise(sig) // at worst the program starts
			}
		default:
			return 0
		}
	}
}

// asInherited runs start with the dispositions and, in this thread, the mask
// that this process was started with: a child takes over both.
func (s *Signals) asInherited(start func() error) error {
	var ignored []os.Signal
	for _, sig := range s.state.Ignored.List() {
		if canIgnore(sig) {
			ignored = append(ignored, sig)
		}
	}
	if len(ignored) > 0 {
		signal.Ignore(ignored...)
		defer signal.Notify(s.caught, catchable()...)
	}
	return withMask(s.state.Blocked, start)
}

// catchable lists what is worth catching: not the two that cannot be caught,
// not those that a fault or a write of our own raises, not SIGCHLD (waiting sees
// more), not SIGURG (the Go scheduler's own), not those of libc's threads (32 to 34).
func catchable() []os.Signal {
	var list []os.Signal
	for n := syscall.Signal(1); n <= 64; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG,
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
			syscall.SIGTRAP, syscall.SIGSTKFLT, syscall.SIGSYS, syscall.SIGXFSZ, 32, 33, 34:
		default:
			list = append(list, n)
		}
	}
	return list
}

// canIgnore tells whether a child may be given the signal as ignored. While
// this process ignores SIGCHLD, the kernel throws exit codes away.
func canIgnore(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGCHLD, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE,
		syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSTKFLT, syscall.SIGSYS,
		32, 33, 34:
		return false
	}
	return true
}

// ends tells whether people and batch systems use the signal to end a job.
func ends(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP:
		return true
	}
	return false
}

// Foreground tells whether this process's group owns the controlling terminal;
// false where there is none. It is safe for concurrent use.
func Foreground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// fromTerminal tells whether the terminal may send the signal to its whole
// foreground group.
func fromTerminal(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGWINCH, syscall.SIGCONT:
		return true
	}
	return false
}
