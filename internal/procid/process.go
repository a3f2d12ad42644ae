// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
)

// Process is a handle on one process, whatever becomes of its pid. Its
// methods may be called from any goroutine. The owner calls Close.
type Process struct {
	identity Identity

	mu sync.RWMutex // guards fd, held while it is used
	fd int          // -1 once closed

	waiting sync.Once
	// exited is closed when the process has ended, watched when the goroutine
	// that looks for it has returned.
	exited, watched chan struct{}
	// watcher is the watching goroutine's own descriptor, nil until somebody
	// waits: most handles are closed without, and the runtime's poller takes
	// four system calls. It stays nil where no descriptor was free.
	watcher *os.File
}

// Open takes hold of the process that has this pid now. [ErrGone] if there is
// none, if it is a zombie, or if it ended meanwhile.
func Open(pid int) (*Process, error) {
	p, _, err := OpenStat(pid)
	return p, err
}

// Hold is Open for the process that an identity means. [ErrGone] too if its pid is
// another one's by now.
func Hold(identity Identity) (*Process, error) {
	held, err := Open(identity.PID)
	if err != nil {
		return nil, err
	}
	if !held.Identity().SameProcess(identity) {
		return nil, errors.Join(fmt.Errorf("pid %d is another process by now: %w", identity.PID, ErrGone), held.Close())
	}
	return held, nil
}

// OpenStat is Open and ReadStat at once: the Stat is that of the process.
func OpenStat(pid int) (*Process, Stat, error) {
	// Non-blocking, so that os.NewFile hands it to the runtime's poller.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, Stat{}, fmt.Errorf("pidfd of %d: %w", pid, GoneError(err))
	}
	p := &Process{fd: fd, exited: make(chan struct{}), watched: make(chan struct{})}
	var stat Stat
	p.identity, stat, err = read(pid)
	// Only as long as the pidfd's process is not reaped does it own the pid:
	// what was read under the pid before this check belongs to it.
	if err == nil && !p.exists() {
		err = fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	if err != nil {
		unix.Close(fd)
		return nil, Stat{}, err
	}
	return p, stat, nil
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
		alive = !Ended(fd)
		return nil
	})
	return err == nil && alive
}

// Ended says whether a pidfd is readable, which means that the last thread has
// ended.
func Ended(fd int) bool {
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
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.fd < 0 {
		return os.ErrClosed
	}
	return use(p.fd)
}

// Wait returns nil when the process has ended, the context's error if that is
// done first, and [os.ErrClosed] if the handle is closed first. Any number of
// goroutines may wait.
func (p *Process) Wait(ctx context.Context) error {
	p.waiting.Do(p.startWatch)
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

// startWatch starts watching, by a descriptor of its own if one is free.
func (p *Process) startWatch() {
	watch := p.watchAtBeats
	_ = p.withFD(func(fd int) error {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			p.watcher = os.NewFile(uintptr(own), "pidfd")
			watch = p.watch
		}
		return err
	})
	go watch()
}

// watchAtBeats looks at each beat until the process ends or Close.
func (p *Process) watchAtBeats() {
	defer close(p.watched)
	for ended := false; !ended; beat.Wait(context.Background()) {
		if p.withFD(func(fd int) error { ended = Ended(fd); return nil }) != nil {
			return
		}
	}
	close(p.exited)
}

// watch parks in the runtime's poller until the process ends or Close.
func (p *Process) watch() {
	defer close(p.watched)
	raw, err := p.watcher.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return Ended(int(fd)) })
	}
	if err == nil {
		close(p.exited)
	}
}

// ExitStatus returns the wait status of an ended process, as waitpid(2) would
// give it, where the kernel tells this process: from the zombie while nobody has reaped
// it, and afterwards from the pidfd since Linux 6.15. Nothing is reaped.
func (p *Process) ExitStatus() (status int32, ok bool) {
	if p.Alive() {
		return 0, false
	}
	stat, err := ReadStat(p.identity.PID)
	if err == nil && stat.Zombie() && stat.StartTicks == p.identity.StartTicks && (stat.ExitCode != 0 || showsAll(stat.PID)) {
		return stat.ExitCode, true
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	err = p.withFD(func(fd int) error { return unix.IoctlPidfdInfo(fd, &info) })
	return info.Exit_code, err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0
}

// showsAll says whether the kernel shows this process all of another one's stat file, of
// which it shows some fields as 0 else: it goes by the same rule for namespaces.
func showsAll(pid int) bool {
	_, err := os.Readlink(Path(pid, "ns/user"))
	return err == nil
}

// Close lets go of the process, which goes on. Waiting goroutines return.
func (p *Process) Close() error {
	p.mu.Lock()
	fd := p.fd
	p.fd = -1
	p.mu.Unlock()
	if fd < 0 {
		return os.ErrClosed
	}
	err := unix.Close(fd)
	// If nobody waits, nobody may begin to; else the watcher is awaited.
	p.waiting.Do(func() { close(p.watched) })
	if p.watcher != nil {
		err = errors.Join(err, p.watcher.Close())
	}
	<-p.watched
	return err
}
