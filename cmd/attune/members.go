// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
)

// What a process says when it joins; struct join of dmlib/glue/job.c.
const (
	joinMagic   = "ATTUNEPK"
	joinVersion = 1
	joinSize    = 24
	joinStart   = 16 // offset of its start, clock ticks since boot
)

// joinPatience is how long a connection that says nothing is listened to: who
// joins has spoken before it is accepted.
const joinPatience = 100 * time.Millisecond

// members are the processes of a packed job on this node.
type members struct {
	listener *net.UnixListener
	job      rundir.Job
	alive    atomic.Int64
	waiters  sync.WaitGroup

	mu     sync.Mutex       // guards what follows; a leaf lock
	status *unix.WaitStatus // of the first process that did not end well; nil: none has ended
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
	return &members{listener: unixListener, job: job}, nil
}

// exit is how the job ended, as far as the kernel tells: as the first process
// that did not end well, or well. Only after serve.
func (m *members) exit() report.Exit {
	m.waiters.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status == nil {
		return report.Exit{}
	}
	return reportExit(launch.Exit{Code: m.status.ExitStatus(), Signal: endingSignal(*m.status)})
}

// endingSignal is 0 for a process that exited.
func endingSignal(status unix.WaitStatus) unix.Signal {
	if status.Signaled() {
		return status.Signal()
	}
	return 0
}

// ended notes how a process ended.
func (m *members) ended(status unix.WaitStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status == nil || *m.status == 0 {
		m.status = &status
	}
}

func (m *members) close() {
	_ = m.listener.Close() // it may be closed already
	m.waiters.Wait()
}

// serve calls joined for each process, once it is known to be the one that
// joined, from a goroutine of the process' own, and returns when all have ended and the job's folder is removed, or
// ctx ends, which removes it too.
func (m *members) serve(ctx context.Context, joined func(*procid.Process)) error {
	wake := func() { _ = m.listener.SetDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(ctx, wake)()
	for {
		if err := m.listener.SetDeadline(time.Time{}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return os.RemoveAll(m.job.Path)
		}
		if m.alive.Load() == 0 {
			gone, err := m.job.Remove(func() bool { return !m.acceptPending(ctx, joined, wake) })
			if gone || err != nil {
				return err
			}
			continue
		}
		conn, err := m.listener.AcceptUnix()
		switch {
		case err == nil:
			m.admit(ctx, conn, joined, wake)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("accept processes: %w", err)
		}
	}
}

// acceptPending admits a process that has joined and is not accepted yet, and
// says whether there was one.
func (m *members) acceptPending(ctx context.Context, joined func(*procid.Process), wake func()) bool {
	if m.listener.SetDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	conn, err := m.listener.AcceptUnix()
	if err != nil {
		return false
	}
	m.admit(ctx, conn, joined, wake)
	return true
}

// admit takes a process in; one that has ended already is none.
func (m *members) admit(ctx context.Context, conn *net.UnixConn, joined func(*procid.Process), wake func()) {
	defer func() { _ = conn.Close() }() // nothing is sent
	process, err := whoJoins(conn)
	if err != nil {
		return
	}
	m.alive.Add(1)
	m.waiters.Go(func() {
		joined(process)
		_ = process.Wait(ctx) // it ends, or the job does
		if status, ok := process.ExitStatus(); ok {
			m.ended(unix.WaitStatus(status))
		}
		_ = process.Close() // a pidfd
		if m.alive.Add(-1) == 0 {
			wake()
		}
	})
}

// whoJoins returns the process at the other end, of this user. It has sent its
// message and hung up, and may have ended: then its pid may be another's by now,
// which started later.
func whoJoins(conn *net.UnixConn) (*procid.Process, error) {
	peer, err := peercred.Of(conn)
	if err != nil {
		return nil, err
	}
	message := make([]byte, joinSize+1)
	if err := conn.SetReadDeadline(time.Now().Add(joinPatience)); err != nil {
		return nil, err
	}
	n, err := conn.Read(message)
	if err != nil {
		return nil, err
	}
	if n != joinSize || string(message[:len(joinMagic)]) != joinMagic ||
		binary.LittleEndian.Uint32(message[len(joinMagic):]) != joinVersion {
		return nil, errors.New("this is no packed program")
	}
	if peer.UID != os.Geteuid() {
		return nil, fmt.Errorf("process of user %d", peer.UID)
	}
	process, err := procid.Open(peer.PID)
	if err != nil {
		return nil, err
	}
	if process.Identity().StartTicks != binary.LittleEndian.Uint64(message[joinStart:]) {
		return nil, errors.Join(procid.ErrGone, process.Close())
	}
	return process, nil
}
