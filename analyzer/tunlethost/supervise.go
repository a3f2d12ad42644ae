// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// supervise starts a tunlet, again and again, until ctx ends or it has failed
// too often. It returns as well when the tunlet is to sleep.
func (h *Host) supervise(ctx context.Context, s *starter, st *Status) {
	var past ends
	for {
		ran, err := h.runOnce(ctx, s, st)
		if errors.Is(err, errAsleep) {
			return // what is known of it is somebody else's by now
		}
		if ctx.Err() != nil {
			h.stopped(st)
			return
		}
		past = past.with(err, ran)
		if !h.again(ctx, st, s.log, past, err) {
			if s.awaited && ctx.Err() == nil {
				h.observer.TunletGone(s.Name, err.Error())
			}
			return
		}
	}
}

// ends counts how often a tunlet has ended, or could not be started, since it ran for
// long.
type ends struct {
	all      int
	failures int // of its own, and not of the process that it shares
}

// with adds an end of one that ran for so long.
func (e ends) with(reason error, ran time.Duration) ends {
	if ran > stable {
		e = ends{}
	}
	e.all++
	if !errors.Is(reason, errShared) {
		e.failures++
	}
	return e
}

// stopped marks a tunlet that ended with the host. One that never answered, or had failed, was not
// there to be stopped.
func (h *Host) stopped(st *Status) {
	h.set(st, func() {
		switch {
		case st.State == StateRunning, st.State == StateStarting && st.Version != "":
			st.State = StateStopped
		case st.State == StateStarting:
			st.Reason = cmp.Or(st.Reason, "it had not answered when the session ended")
		}
	})
}

// again waits before the next start. It returns false if there is none.
func (h *Host) again(ctx context.Context, st *Status, log *slog.Logger, past ends, err error) bool {
	switch {
	case errors.Is(err, errPermanent):
		h.set(st, func() { st.State, st.Reason = StateRefused, err.Error() })
		log.Warn("tunlet refused; its problem goes untuned", "error", err)
		return false
	case errors.Is(err, errLimit):
		h.set(st, func() { st.State, st.Reason = StateQuarantined, err.Error() })
		log.Warn("tunlet put into quarantine; its problem goes untuned", "error", err)
		return false
	case past.failures >= h.opts.maxFailures:
		h.set(st, func() {
			st.State, st.Reason = StateQuarantined, fmt.Sprintf("failed %d times, the last time: %v", past.failures, err)
		})
		log.Warn("tunlet put into quarantine; its problem goes untuned", "failures", past.failures, "error", err)
		return false
	}
	h.set(st, func() { st.State, st.Reason = StateRestarting, err.Error() })
	pause := h.opts.pause << min(past.all-1, 5)
	log.Info("tunlet is started again", "in", pause, "reason", err)
	if !beat.Pause(ctx, pause) {
		h.stopped(st)
		return false
	}
	h.set(st, func() { st.Restarts++ })
	return true
}

// runOnce starts a tunlet when it is of use and returns when it has ended, with
// the reason and how long it ran: to wait for its start is not to run.
func (h *Host) runOnce(ctx context.Context, s *starter, st *Status) (ran time.Duration, err error) {
	t, err := h.rise(ctx, s, st)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	s.awaited = false
	h.set(st, func() {
		st.State, st.Version, st.Summary = StateRunning, t.info.GetVersion(), t.info.GetSummary()
	})
	h.observer.TunletReady(t)
	over := h.watch(ctx, t, st)
	reason := t.life.ended()
	u, _ := t.life.measure()
	h.set(st, func() { st.PeakResidentBytes = max(st.GetPeakResidentBytes(), u.peak) })
	h.observer.TunletGone(s.Name, reason.Error())
	return time.Since(began), cmp.Or(over, reason)
}

// watch waits for a tunlet's end, and causes it when ctx ends or the tunlet takes
// too much, which it returns as an errLimit.
func (h *Host) watch(ctx context.Context, t *Tunlet, st *Status) error {
	over := h.look(ctx, t, st)
	if over != nil {
		t.Kill(over.Error())
	} else if ctx.Err() != nil {
		t.Kill("stopped with the session")
	}
	return over
}

// look looks at what a tunlet takes until it has ended, or ctx has. It returns an
// errLimit if that is too much.
func (h *Host) look(ctx context.Context, t *Tunlet, st *Status) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	w := h.opts.Limits.watcher(t.life)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.life.done():
			return nil
		case now := <-look.C:
			u, ok := t.life.measure()
			h.set(st, func() { st.PeakResidentBytes = max(st.GetPeakResidentBytes(), u.peak) })
			if !ok {
				continue // it is ending
			}
			if err := w.look(now, u); err != nil {
				return err
			}
		}
	}
}
