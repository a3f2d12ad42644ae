// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
)

// helper is a process that runs [Serve]. It belongs to whoever has taken it from the
// pool.
type helper struct {
	command *exec.Cmd
	held    *procid.Process
	in      *os.File      // what it is asked
	out     *os.File      // what it answers
	used    bool          // it has answered before
	nobody  bool          // its user is nobody
	starved time.Duration // at most, for want of a processor
}

// startHelper runs the command of the options as a helper.
func startHelper(options Options) (_ *helper, err error) {
	questions, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer questions.Close()
	out, answers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer answers.Close()
	h := &helper{command: exec.Command(options.Command[0], options.Command[1:]...), in: in, out: out, starved: options.mostStarved}
	h.command.Stdin, h.command.Stdout = questions, answers
	// One processor is enough for one question at a time.
	h.command.Env = append(os.Environ(), "GOMAXPROCS=1")
	if h.nobody, err = startConfined(h.command, options.Own && !HaveRights()); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.held, err = procid.Open(h.command.Process.Pid); err != nil {
		return nil, errors.Join(err, h.close(), h.command.Process.Kill(), h.command.Wait())
	}
	return h, nil
}

// startConfined starts a helper as nobody, with no rights but those to read the memory of
// processes, and files that only their user may read. Where this process is of a user's own
// the helper is that user's, too, and where it is to be.
func startConfined(command *exec.Cmd, own bool) (nobody bool, err error) {
	confine.Apart(func(failed error) {
		if err = failed; err != nil {
			return
		}
		if !own {
			nobody, err = confine.AsNobody(command, rights())
		}
		if err == nil {
			err = command.Start()
		}
	}, confine.Rights{Keep: rights(), Start: []uintptr{unix.CAP_SETUID, unix.CAP_SETGID}})
	return nobody, err
}

// rights are those of helpers, where this process has them: the memory, root and executable of
// another user's process, and arguments of those that are not dumpable; environments and programs
// that only their user may read.
func rights() []uintptr { return []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH} }

// HaveRights says whether helpers have these rights, without which nobody looks into no process. Root of
// a container may lack them, and reads its own processes itself then.
func HaveRights() bool {
	has, err := confine.Effective()
	return err == nil && !slices.ContainsFunc(rights(), func(right uintptr) bool { return !has.Has(right) })
}

// ask puts a question, and waits for the answer until ctx ends or the helper has had its
// time.
func (h *helper) ask(ctx context.Context, asked request, patience time.Duration) (answer reply, err error) {
	// It only fails for what cannot be waited for: pipes can.
	until := func(t time.Time) { _ = errors.Join(h.in.SetDeadline(t), h.out.SetDeadline(t)) }
	over := func() { until(time.Unix(0, 1)) }
	until(time.Time{})
	defer context.AfterFunc(ctx, over)()
	defer h.limit(patience, over)()
	if err = send(h.in, asked); err == nil {
		err = receive(h.out, &answer)
	}
	if err == nil && answer.Unfit {
		err = answer.err()
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	h.used = true
	return answer, err
}

// limit calls over when the helper has had its time. When stop has returned over is not
// called any more.
func (h *helper) limit(patience time.Duration, over func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if h.spend(ctx, patience) {
			over()
		}
	}()
	return func() { cancel(); <-done }
}

// spend waits until the helper has had its time; false if ctx ended first. One that runs or
// waits for a processor at the end of it hangs nowhere: on a crowded node it has until it has
// computed for as long.
func (h *helper) spend(ctx context.Context, patience time.Duration) bool {
	pid := h.held.PID()
	before, err := procid.CPUTime(pid)
	if err != nil {
		return true
	}
	for began := time.Now(); beat.Pause(ctx, patience); {
		computed, err := procid.CPUTime(pid)
		if err != nil || computed-before >= patience || time.Since(began) >= h.starved {
			return true
		}
		if runnable, err := procid.Runnable(pid); err != nil || !runnable {
			return true
		}
	}
	return false
}

// close lets go of what the helper is spoken to by; one that is not stuck ends then.
func (h *helper) close() error { return errors.Join(h.in.Close(), h.out.Close()) }

// lastPatience is how long a helper that was killed may take to end when the pool is
// closed: more than the kernel needs, unless the helper hangs or waits for a processor.
const lastPatience = 200 * time.Millisecond

// end kills the helper and calls gone when it has ended. One that is stuck in a read of
// the kernel ends when that does: it is left behind when it has had its patience after the
// end of ctx.
func (h *helper) end(ctx context.Context, patience time.Duration, gone func()) {
	_ = errors.Join(h.close(), h.held.Signal(unix.SIGKILL)) // it may have ended
	err := h.held.Wait(ctx)
	if err != nil {
		last, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer h.limit(patience, cancel)()
		err = h.held.Wait(last)
	}
	if err == nil {
		_ = h.command.Wait() // it was killed
		gone()
	}
	_ = errors.Join(h.command.Process.Release(), h.held.Close()) // the former fails after Wait
}
