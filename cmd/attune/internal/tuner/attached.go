// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/procid"
)

// AttachAll attaches to processes side by side, and says of each on standard error what
// became of it. The error says why those that are not attached to are not. As many are
// entered at a time as there are processors: with more, the thread of a process that
// is stopped for that would wait for one.
func (s *Tuner) AttachAll(ctx context.Context, pids []int) (attached []*controller.Attached, err error) {
	var mu sync.Mutex // guards the results
	var errs, gone []error
	q := entryQueue{atATime: max(2, runtime.NumCPU()), say: func(text string) { s.Out.notes([]string{text}) }}
	for _, pid := range pids {
		s.named.pids.Store(pid, nil)
	}
	q.enterAll(ctx, pids, func(e entry) {
		a, err := s.attach(ctx, e)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, procid.ErrGone):
			gone = append(gone, err)
		case err != nil:
			errs = append(errs, err)
		}
		if a != nil {
			attached = append(attached, a)
		}
	})
	if len(attached) == 0 { // else workers have come and gone
		errs = append(errs, gone...)
		if ctx.Err() != nil {
			errs = append(errs, errors.New("ended before any process was entered"))
		}
	}
	return attached, errors.Join(errs...)
}

// attach attaches to one process; the error is of one that is gone, or that cannot be
// entered for want of rights or because another attune has it, which is followed all
// the same.
func (s *Tuner) attach(ctx context.Context, e entry) (*controller.Attached, error) {
	a, err := s.Joined.Controller.Attach(ctx, e.pid)
	e.slow.Stop()
	switch {
	case err != nil && errors.Is(err, ctx.Err()):
		err = nil
	case err != nil:
		err = fmt.Errorf("%s: %w", e.name, procs.Gone(e.pid, err))
		s.Log.Info("not attached", "pid", e.pid, "reason", err)
	case a.Refused():
		err = fmt.Errorf("%s cannot be entered: %w", e.name, refusal(e.pid, a.NotInjected))
		s.Log.Info("not entered", "pid", e.pid, "reason", a.NotInjected)
	case errors.Is(a.NotInjected, procid.ErrGone): // its end says it all
		s.Log.Info("not entered", "pid", e.pid, "reason", a.NotInjected)
	case a.NotInjected != nil && ctx.Err() != nil: // nobody watches it any more
		s.Log.Info("let go before it was entered", "pid", e.pid, "reason", a.NotInjected)
	case a.NotInjected != nil:
		s.Out.notes([]string{fmt.Sprintf("%s is watched from outside%s: %v", e.name, howLong(a), a.NotInjected)})
		s.Log.Info("watched from outside", "pid", e.pid, "reason", a.NotInjected)
	case a.Injection.Attempts == 0:
		s.Out.notes([]string{"entered " + e.name}) // with the one that forked it
	default:
		s.Out.notes([]string{fmt.Sprintf("entered %s, a thread stopped for %v", e.name, a.Injection.Stopped.Round(10*time.Microsecond))})
		s.Log.Info("attached", "pid", e.pid, "thread", a.Injection.Thread, "attempts", a.Injection.Attempts,
			"stopped", a.Injection.Stopped, "loaded", a.Injection.Loaded, "slots", len(a.Injection.Slots))
	}
	return a, err
}

// howLong says for how long a process is watched from outside.
func howLong(a *controller.Attached) string {
	if a.Later() {
		return " until it can be entered"
	}
	return " only"
}

// namedProcesses are those that AttachAll was given.
type namedProcesses struct{ pids sync.Map }

// entered says of one of them, which could not be entered or has executed another program
// since, that it is entered now. Of other processes it says nothing: they may be many.
func (n *namedProcesses) entered(pid int, out *outputs) {
	if _, named := n.pids.Load(pid); named {
		out.notes([]string{"entered " + procs.Called(pid)})
	}
}

// refusal says in plain words why a process is not for this user.
func refusal(pid int, why error) error {
	owner, err := procs.Owner(pid)
	if err != nil || owner == os.Geteuid() || os.Geteuid() == 0 || errors.Is(why, controller.ErrHeld) {
		return why
	}
	return fmt.Errorf("it belongs to user %s: no permission to read and write its memory", procs.UserName(owner))
}

// AwaitAll returns when all processes have ended or ctx ends.
func AwaitAll(ctx context.Context, attached []*controller.Attached) {
	var all sync.WaitGroup
	for _, a := range attached {
		all.Go(func() { _ = a.Wait(ctx) }) // it can only be the end of ctx
	}
	all.Wait()
}

// KeepChanges leaves what the Analyzer has not undone in force, for attune undo.
// What cannot be kept is undone as it is without --keep.
func (s *Tuner) KeepChanges(ctx context.Context) {
	if !s.Keep {
		return
	}
	kept, err := byhand.Open(ctx)
	if err != nil {
		s.Log.Warn("changes are undone, for they cannot be written down", "reason", err)
		return
	}
	ids, err := s.Joined.Controller.Keep(kept)
	if err := errors.Join(err, kept.Close()); err != nil {
		s.Log.Warn("not every change is kept", "reason", err)
	}
	if len(ids) > 0 {
		s.Log.Warn("changes stay in force: attune undo takes them back", "ids", strings.Join(ids, " "))
	}
}

// leaveTimeout bounds how long processes have to come to a hook at the end.
const leaveTimeout = 500 * time.Millisecond

// LeaveAll gives processes their calls back, as far as they come to a hook in time.
func (s *Tuner) LeaveAll(ctx context.Context, attached []*controller.Attached) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range attached {
		all.Go(func() {
			if stayed := a.Leave(ctx); stayed > 0 {
				s.Log.Debug("calls that still pass through the library, which does nothing", "slots", stayed)
			}
		})
	}
	all.Wait()
}

// CommandLine is a process' own, or its id if that cannot be read. A program that
// writes a title there leaves what it does not need of the space empty.
func CommandLine(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.TrimRight(string(text), "\x00 ")
	if err != nil || words == "" {
		return []string{"pid " + strconv.Itoa(pid)}
	}
	return strings.Split(words, "\x00")
}
