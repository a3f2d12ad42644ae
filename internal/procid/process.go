// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a handle on one process, whatever becomes of its pid. Its
// methods may be called from any goroutine. The owner calls Close.
type Process struct {
	identity Identity
	file     *os.File
	raw      syscall.RawConn

	waiting sync.Once
	// exited is closed when the process has ended, watched when the goroutine
	// that looks for it has returned.
	exited, watched chan struct{}
}

// Open takes hold of the process that has this pid now. [ErrGone] if there is
// none, if it is a zombie, or if it ended meanwhile.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pidfd of %d: %w", pid, GoneError(err))
	}
	// Non-blocking, so that os.NewFile hands it to the runtime's poller.
	file := os.NewFile(uintptr(fd), "pidfd")
	p := &Process{file: file, exited: make(chan struct{}), watched: make(chan struct{})}
	if p.raw, err = file.SyscallConn(); err == nil {
		p.identity, err = Of(pid)
	}
	// Only as long as the pidfd's process is not reaped does it own the pid:
	// what was read under the pid before this check belongs to it.
	if err == nil && !p.exists() {
		err = fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return p, nil
}

// Identity returns who it is. The executable is that of the time of Open.
func (p *Process) Identity() Identity { return p.identity }

// PID returns the process id, which is only safe to use while Alive.
func (p *Process) PID() int { return p.identity.PID }

// exists says whether the process has not been reaped yet.
func (p *Process) exists() bool {
	err := p.withFD(func(fd int) error { return unix.PidfdSendSignal(fd, 0, nil, 0) })
	return err == nil || errors.Is(err, unix.EPERM)
}

// Alive says whether any thread of the process still runs. It is false for a
// zombie and after Close.
func (p *Process) Alive() bool {
	alive := false
	err := p.withFD(func(fd int) error {
		alive = !ended(fd)
		return nil
	})
	return err == nil && alive
}

// ended says whether the pidfd is readable, which means that the last thread
// has ended.
func ended(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLIN|unix.POLLHUP) != 0
}

// Signal sends a signal to the process and to no other.
func (p *Process) Signal(signal unix.Signal) error {
	err := p.withFD(func(fd int) error { return unix.PidfdSendSignal(fd, signal, nil, 0) })
	if err != nil {
		return fmt.Errorf("signal %d to pid %d: %w", signal, p.identity.PID, GoneError(err))
	}
	return nil
}

// WithFD calls use with the pidfd, which stays open meanwhile. use must not
// keep it or block for long. [os.ErrClosed] after Close.
func (p *Process) WithFD(use func(fd int) error) error { return p.withFD(use) }

func (p *Process) withFD(use func(fd int) error) error {
	var inner error
	if err := p.raw.Control(func(fd uintptr) { inner = use(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Wait returns nil when the process has ended, the context's error if that is
// done first, and [os.ErrClosed] if the handle is closed first. Any number of
// goroutines may wait.
func (p *Process) Wait(ctx context.Context) error {
	p.waiting.Do(func() { go p.watch() })
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.watched:
	}
	select {
	case <-p.exited:
		return nil
	default:
		return os.ErrClosed
	}
}

// watch parks in the runtime's poller until the process ends or Close.
func (p *Process) watch() {
	defer close(p.watched)
	err := p.raw.Read(func(fd uintptr) bool { return ended(int(fd)) })
	if err == nil {
		close(p.exited)
	}
}

// ExitStatus returns the wait status of an ended process, as waitpid(2) would
// give it, where the kernel tells: from the zombie while nobody has reaped
// it, and afterwards from the pidfd since Linux 6.15. Nothing is reaped.
func (p *Process) ExitStatus() (status int32, ok bool) {
	if p.Alive() {
		return 0, false
	}
	stat, err := ReadStat(p.identity.PID)
	if err == nil && stat.Zombie() && stat.StartTicks == p.identity.StartTicks {
		return stat.ExitCode, true
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	err = p.withFD(func(fd int) error { return unix.IoctlPidfdInfo(fd, &info) })
	return info.Exit_code, err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0
}

// Close lets go of the process, which goes on. Waiting goroutines return.
func (p *Process) Close() error {
	err := p.file.Close()
	// If nobody waits, nobody may begin to; else the watcher is awaited.
	p.waiting.Do(func() { close(p.watched) })
	<-p.watched
	return err
}
