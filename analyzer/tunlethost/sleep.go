// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// unknownStarts bounds the tunlets that are started at one time only to ask what
// they are: nobody waits for them, and the application is just starting, too.
const unknownStarts = 2

// errAsleep says that a tunlet sleeps: it is supervised again when it is woken.
var errAsleep = errors.New("it is not of use yet")

// rise returns a tunlet that runs, as soon as it is of use.
func (h *Host) rise(ctx context.Context, s *starter, st *Status) (*Tunlet, error) {
	if !s.awake {
		t, err := h.doze(ctx, s, st)
		if t != nil || err != nil {
			return t, err
		}
	}
	h.set(st, func() { st.State = StateStarting })
	t, err := s.start(ctx)
	if err == nil {
		h.remember(t.info, s)
	}
	return t, err
}

// doze returns when a tunlet is of use: the tunlet itself if that had to be started
// to know that it does not sleep. errAsleep: somebody else wakes it, and has it.
func (h *Host) doze(ctx context.Context, s *starter, st *Status) (*Tunlet, error) {
	info, t, err := h.describe(ctx, s)
	h.set(st, func() { st.Sha256 = s.sum })
	if err != nil {
		return nil, err
	}
	settled, err := settle(info, s.options)
	if err != nil {
		return nil, err // a tunlet that was started has said so itself
	}
	if unset := sdk.Unset(options(info), settled); len(unset) > 0 {
		return nil, h.unused(s, t, st, info, unset)
	}
	if len(info.GetWake()) == 0 {
		s.awake = true
		return t, nil
	}
	h.set(st, func() {
		st.State, st.Version, st.Summary = StateAsleep, info.GetVersion(), info.GetSummary()
	})
	s.awaited = true
	if t == nil {
		h.observer.TunletAsleep(info, sync.OnceFunc(func() { h.wake(ctx, s, st) }))
		return nil, errAsleep
	}
	woken, wake := context.WithCancel(context.Background())
	defer wake()
	h.observer.TunletAsleep(info, wake)
	if t = h.linger(ctx, woken, s, t, st); t == nil {
		select {
		case <-woken.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.awake = true
	return t, nil
}

// unused has a tunlet sleep to the end that has not been told what it needs to
// know of the program. That is as it should be, unless somebody has told it a part.
// t is its process if it had to be asked; nil: there is none.
func (h *Host) unused(s *starter, t *Tunlet, st *Status, info *attunev1.DescribeResponse, unset []string) error {
	if t != nil {
		t.Kill("it is not configured")
		_ = t.life.ended()
	}
	h.set(st, func() {
		st.State, st.Version, st.Summary = StateAsleep, info.GetVersion(), info.GetSummary()
		if len(s.options) > 0 {
			st.Reason = "of no use without a value for " + strings.Join(unset, ", ")
		}
	})
	return errAsleep
}

// linger keeps a tunlet that was started only to be asked for a while, or until it is
// woken: the program is just starting, and if it has the tunlet's problem it will need
// it soon. Nobody calls it meanwhile, so it takes memory only. linger returns nil
// if it ended the tunlet, as it does with one that takes too much.
func (h *Host) linger(ctx, woken context.Context, s *starter, t *Tunlet, st *Status) *Tunlet {
	ctx, cancel := context.WithTimeout(ctx, h.opts.linger)
	defer cancel()
	defer context.AfterFunc(woken, cancel)()
	over := h.look(ctx, t, st)
	if over != nil {
		s.log.Warn("tunlet ended that was not of use yet; it is started again when it is", "error", over)
	} else if woken.Err() != nil && t.alive() {
		return t
	}
	t.Kill("it is not of use yet")
	_ = t.life.ended()
	return nil
}

// describe returns what a tunlet says of itself. One that is not known is
// started for it, and is returned as well.
func (h *Host) describe(ctx context.Context, s *starter) (*attunev1.DescribeResponse, *Tunlet, error) {
	if err := h.read(ctx, s); err != nil {
		return nil, nil, err
	}
	if info := h.descriptions.get(s.Name, s.sum); info != nil {
		return info, nil, nil
	}
	select {
	case h.unknown <- struct{}{}:
		defer func() { <-h.unknown }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	t, err := s.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	h.remember(t.info, s)
	return t.info, t, nil
}

// read verifies a tunlet's file, one tunlet at a time: many names may lead to
// one file, which is to be read once.
func (h *Host) read(ctx context.Context, s *starter) error {
	h.reading.Lock()
	defer h.reading.Unlock()
	return s.verify(ctx)
}

// remember keeps a description for the next run.
func (h *Host) remember(info *attunev1.DescribeResponse, s *starter) {
	if err := h.descriptions.put(info, s.sum); err != nil {
		s.log.Debug("the tunlet's description is not kept; it is asked again next time", "error", err)
	}
}

// settle checks options against what a tunlet says that there is, and adds the
// defaults.
func settle(info *attunev1.DescribeResponse, given map[string]string) (map[string]string, error) {
	settled, err := sdk.SettleOptions(options(info), given)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errPermanent)
	}
	return settled, nil
}

// options are those that a tunlet says that there are.
func options(info *attunev1.DescribeResponse) (list []sdk.Option) {
	for _, o := range info.GetOptions() {
		list = append(list, sdk.OptionFrom(o))
	}
	return list
}

// CheckOptions says what is wrong with options for a tunlet, by what it says that
// there are; nil also of one that cannot be asked, which whoever starts it is told.
func CheckOptions(ctx context.Context, c Candidate, opts Options, given map[string]string) error {
	info, _, err := Describe(ctx, c, opts)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	_, err = sdk.SettleOptions(options(info), given)
	return err
}

// Describe returns what a tunlet says of itself, and the SHA-256 of its file. One
// that is not known by opts.DescriptionDir is started for it, and ended.
func Describe(ctx context.Context, c Candidate, opts Options) (*attunev1.DescribeResponse, string, error) {
	if c.Err != nil {
		return nil, "", c.Err
	}
	h := New(opts, nil)
	if err := h.prepare(); err != nil {
		return nil, "", err
	}
	s := h.starter(c)
	s.alone = true
	info, t, err := h.describe(ctx, s)
	if t != nil {
		t.Kill("it was only asked")
		_ = t.life.ended()
	}
	return info, s.sum, err
}
