// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/pending"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// members are the processes of a packed job on this node.
type members struct {
	listener *net.UnixListener
	job      rundir.Job
	log      *slog.Logger // of the session, once there is one
	short    bool         // the last accept was refused for want of something
	// waiting is of a process that is accepted, and could not be looked at for want of
	// something; nil: there is none.
	waiting *net.UnixConn
	alive   atomic.Int64
	waiters sync.WaitGroup

	mu   sync.Mutex // guards what follows; a leaf lock
	past []member   // that have ended, in that order
}

// member is a process of a packed job.
type member struct {
	process *procid.Process
	parent  int
	status  *unix.WaitStatus // nil: it runs, or the kernel does not tell
}

// newMembers takes over the socket, which a process has joined at already. The
// caller calls close.
func newMembers(socket *os.File, job rundir.Job) (*members, error) {
	listener, err := net.FileListener(socket)
	err = errors.Join(err, socket.Close())
	if err != nil {
		return nil, fmt.Errorf("attune packed is started by packed programs only: %w", err)
	}
	unixListener, ok := listener.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is no Unix socket", listener.Addr()), listener.Close())
	}
	return &members{listener: unixListener, job: job, log: slog.New(slog.DiscardHandler)}, nil
}

// exit is how the job ended, as far as the kernel tells: as the first process
// that did not end well, or well; and its processes, which ran the program. Only after
// serve.
func (m *members) exit(program string) *attunev1.RecordedExit {
	m.waiters.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	job, bad := &attunev1.RecordedExit{GoingOn: true}, false
	for _, one := range m.past {
		process := &attunev1.RecordedUnseen{Pid: int32(one.process.PID()), ParentPid: int32(one.parent), Executable: program}
		job.Unseen = append(job.Unseen, process)
		if one.status == nil {
			continue
		}
		process.Code, process.Signal = tuner.ExitOf(launch.Exit{Code: one.status.ExitStatus(), Signal: endingSignal(*one.status)})
		if !bad {
			job.GoingOn, job.Code, job.Signal = false, process.Code, process.Signal
			bad = *one.status != 0
		}
	}
	return job
}

// endingSignal is 0 for a process that exited.
func endingSignal(status unix.WaitStatus) unix.Signal {
	if status.Signaled() {
		return status.Signal()
	}
	return 0
}

// ended notes how a process ended.
func (m *members) ended(one member) {
	if status, ok := one.process.ExitStatus(); ok {
		status := unix.WaitStatus(status)
		one.status = &status
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = append(m.past, one)
}

func (m *members) close() {
	_ = m.listener.Close() // it may be closed already
	if m.waiting != nil {
		_ = m.waiting.Close() // nothing is sent
	}
	m.waiters.Wait()
}

// serve calls joined for each process, once it is known to be the one that
// joined, from a goroutine of the process' own, and returns when all have ended
// and the job's folder is removed, or ctx ends, which removes it too.
func (m *members) serve(ctx context.Context, joined func(*procid.Process)) error {
	wake := func() { _ = m.listener.SetDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(ctx, wake)()
	for {
		if err := m.listener.SetDeadline(time.Time{}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return m.job.Leave()
		}
		if m.alive.Load() == 0 {
			gone, err := m.job.Remove(func() bool { return !m.acceptPending(ctx, joined, wake) })
			if gone || err != nil {
				return err
			}
			continue
		}
		if err := m.accept(ctx, joined, wake); err != nil {
			return err
		}
	}
}

// acceptPause follows what was refused for lack of something, descriptors mostly.
const acceptPause = 10 * time.Millisecond

// accept admits the process that joins next. It returns nil, too, when the deadline has
// passed, and when the process has to wait.
func (m *members) accept(ctx context.Context, joined func(*procid.Process), wake func()) error {
	err := m.admitNext(ctx, joined, wake)
	switch {
	case err == nil:
		m.short = false
	case errors.Is(err, os.ErrDeadlineExceeded):
	case passing.Error(err):
		if !m.short {
			m.log.Warn("processes have to wait until they are followed", "reason", err)
		}
		m.short = true
		beat.Pause(ctx, acceptPause)
	default:
		return fmt.Errorf("accept processes: %w", err)
	}
	return nil
}

// acceptPending admits a process that has joined and is not accepted yet, and
// says whether there is one. It looks whatever the deadline: wake may set it
// meanwhile, and then the caller comes again.
func (m *members) acceptPending(ctx context.Context, joined func(*procid.Process), wake func()) bool {
	if m.waiting == nil && (!pending.Input(m.listener) || m.listener.SetDeadline(time.Time{}) != nil) {
		return false
	}
	return m.accept(ctx, joined, wake) == nil
}

// admitNext admits the process that waits, else the one that joins next. After an error that
// passes it still waits.
func (m *members) admitNext(ctx context.Context, joined func(*procid.Process), wake func()) (err error) {
	if m.waiting == nil {
		if m.waiting, err = m.listener.AcceptUnix(); err != nil {
			return err
		}
	}
	one, err := whoJoins(m.waiting)
	if passing.Error(err) {
		return err
	}
	_ = m.waiting.Close() // nothing is sent
	m.waiting = nil
	if errors.Is(err, io.EOF) {
		return nil // who only looked whether the job is there
	}
	if err != nil {
		m.log.Warn("a process that has joined is not followed", "reason", err)
		return nil
	}
	m.admit(ctx, one, joined, wake)
	return nil
}

// admit takes a process in, which may have ended already.
func (m *members) admit(ctx context.Context, one member, joined func(*procid.Process), wake func()) {
	m.alive.Add(1)
	m.waiters.Go(func() {
		joined(one.process)
		_ = one.process.Wait(ctx) // it ends, or the job does
		m.ended(one)
		_ = one.process.Close() // a pidfd
		if m.alive.Add(-1) == 0 {
			wake()
		}
	})
}
