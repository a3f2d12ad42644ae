// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/controller"
)

// AttachAll attaches to what is there; the error says why to the rest not.
func (s *Tuner) AttachAll(ctx context.Context, pids []int) (attached []*controller.Attached, err error) {
	var errs []error
	for _, pid := range pids {
		a, err := s.Joined.Controller.Attach(ctx, pid)
		if err != nil {
			s.Log.Warn("not attached", "pid", pid, "reason", err)
			errs = append(errs, err)
			continue
		}
		attached = append(attached, a)
		if a.NotInjected != nil {
			s.Log.Warn("watched from outside", "pid", pid, "reason", a.NotInjected)
			continue
		}
		s.Log.Info("attached", "pid", pid, "thread", a.Injection.Thread, "attempts", a.Injection.Attempts,
			"stopped", a.Injection.Stopped, "loaded", a.Injection.Loaded, "slots", len(a.Injection.Slots))
	}
	return attached, errors.Join(errs...)
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

// CommandLine is a process' own, or its id if that cannot be read.
func CommandLine(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(text) == 0 {
		return []string{"pid " + strconv.Itoa(pid)}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
