// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handover takes tasks. Its methods may be called from any goroutine.
type handover struct {
	rules         rules
	sessions      *sessions
	registrations *registrations
	notes         *notes
	account       func(pid int) error // has the kernel account for it
	log           *slog.Logger
}

// taken is what a task gets.
type taken struct {
	env  []string // the variables with which its program comes to the start gate
	note string   // what it asked for and does not get, for its user; empty: nothing
}

// takeTask takes a task into the session of its job. by is who hands it over: root,
// or the task's own user. The Analyzer is told beside.
func (h *handover) takeTask(ctx context.Context, by uint32, t Task) (taken, error) {
	if err := t.validate(); err != nil {
		return taken{}, err
	}
	held, err := procid.Open(t.PID)
	if err != nil {
		return taken{}, fmt.Errorf("%w: %w", errBadTask, err)
	}
	if err := mayHandOver(by, t); err != nil {
		return taken{}, errors.Join(err, held.Close())
	}
	r := t.registration()
	o := order{registration: r, job: r.GetJob(), uid: t.UID, grant: h.rules.granted(r, t.UID, registry.HandedOver)}
	if o.grant.mode == "" {
		h.sessions.refused(o.grant.refused)
		return taken{}, errors.Join(h.refuse(t, errDenied, o.grant.reason), held.Close())
	}
	if refused, err := h.check(ctx, r); err != nil {
		h.sessions.refused(refused)
		return taken{}, errors.Join(h.refuse(t, errBadTask, err.Error()), held.Close())
	}
	s, err := h.sessions.takeProcess(o, held)
	if err != nil {
		return taken{}, errors.Join(h.refuse(t, errDenied, err.Error()), held.Close())
	}
	if err := h.account(t.PID); err != nil {
		h.log.Debug("the account of a task is made of samples", "pid", t.PID, "error", err)
	}
	note := unused(r, h.registrations.latest(s.order.registration))
	h.registrations.register(r, func() bool { return h.sessions.lives(s) })
	select {
	case <-s.ready:
		return taken{h.environment(s, t), note}, nil
	case <-ctx.Done():
		return taken{}, fmt.Errorf("the controller is not ready: %w", ctx.Err())
	}
}

// environment is what the program of a task gets to come to the start gate: nothing if the
// policy has programs that get nothing, of which it may be one. What it may be given is
// known once it is executed.
func (h *handover) environment(s *session, t Task) []string {
	if h.rules.granted(s.order.registration, t.UID, "").mode == "" {
		return nil
	}
	return s.controller.Environment(t.PID)
}

// unused says, for people, which of the wishes of a task its job's session does not have:
// what the job's first task asked for holds. Empty: it has all of them.
func unused(asked, holds *attunev1.Registration) string {
	var wishes []string
	sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
	if asked.GetMode() != holds.GetMode() {
		wishes = append(wishes, "mode")
	}
	if !slices.Equal(sorted(asked.GetTunlets()), sorted(holds.GetTunlets())) {
		wishes = append(wishes, "tunlets")
	}
	if asked.GetObjective() != holds.GetObjective() {
		wishes = append(wishes, "objective")
	}
	if len(wishes) == 0 {
		return ""
	}
	return fmt.Sprintf("not used of what this step asks for: %s; a job is one session, and what its first task asked for holds for all of it", strings.Join(wishes, ", "))
}

// check says what a job asks for that it cannot have, and the label of such refusals.
func (h *handover) check(ctx context.Context, r *attunev1.Registration) (refused string, err error) {
	if err := registry.CheckRegistrationSize(r); err != nil { // no Analyzer would take it
		return metrics.RefusedTooLong, err
	}
	if _, err := objective.OfService(r.GetObjective()); err != nil {
		return metrics.RefusedObjective, fmt.Errorf("objective: %w", err)
	}
	return metrics.RefusedTunlets, h.registrations.checkTunlets(ctx, r)
}

// refuse is the error of a task that is left alone. Its process is noted with the reason,
// for whoever hands tasks over has not always a way to tell its user.
func (h *handover) refuse(t Task, kind error, reason string) error {
	h.notes.mismatch(&attunev1.Mismatch{
		Registration: t.id(), Pid: int32(t.PID), Uid: t.UID, Executable: registry.HandedOver, Reason: reason,
	})
	return fmt.Errorf("%w: %s", kind, reason)
}

// mayHandOver lets root hand over anything, and others what runs with their rights: a
// task that a batch system has forked for them, though its memory is root's until it
// executes the program. What may then be done to that is asked each time, see
// [procid.Owner].
func mayHandOver(by uint32, t Task) error {
	if by == 0 {
		return nil
	}
	user, err := procid.RunsAs(t.PID)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadTask, err)
	}
	if by != t.UID || by != user {
		return fmt.Errorf("%w: user %d may hand over processes of their own", errDenied, by)
	}
	return nil
}
