// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// maxRounds bounds how often threads are listed anew. Threads inherit what is
// changed from their creators, so that two rounds are the rule.
const maxRounds = 50

// Request says what is to be changed.
type Request struct {
	// Knob is its name; case does not matter.
	Knob string
	// Value in text form.
	Value string
	// On is the thread or descriptor; Everywhere for all.
	On int
	Options
}

// plan is a change that was checked and can be made.
type plan struct {
	target *Target
	knob   knob
	asked  string
	all    bool    // every thread
	states []State // what the journal must know before Run
	undo   error   // what stands against taking the change back; nil: nothing
	result string  // of advice
}

// Validate checks knob and value without a process: [ErrUnknownKnob],
// [ErrBadValue]. It returns the knob.
func Validate(request Request) (Knob, error) {
	k, _, err := request.parse()
	return k.Knob, err
}

// parse is the knob, and the value as it is set.
func (r Request) parse() (k knob, value string, err error) {
	if k, err = find(r.Knob); err != nil {
		return k, "", err
	}
	if value, err = k.parse(r.Value); err != nil {
		return k, "", fmt.Errorf("%s: %w", k.Name, err)
	}
	switch k.On {
	case OnThreads, OnSockets, OnPipes:
	default:
		if r.On != Everywhere {
			return k, "", fmt.Errorf("%s: %w: it applies to the %s as a whole, leave @%d out", k.Name, ErrBadValue, k.On, r.On)
		}
	}
	return k, value, nil
}

// prepare checks a change and reads the old values; it touches nothing. Every
// error is a reason not to try.
func prepare(t *Target, request Request) (*plan, error) {
	k, asked, err := request.parse()
	if err != nil {
		return nil, err
	}
	if err := t.Allowed(); err != nil {
		return nil, err
	}
	t.inJob = request.InJob
	p := &plan{target: t, knob: k, asked: asked, all: request.On == Everywhere}
	places, err := k.places(t, request.On)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	for _, place := range places {
		if err := unlessGone(p.look(place)); err != nil {
			return nil, err
		}
	}
	if len(p.states) == 0 {
		return nil, fmt.Errorf("%s: every place it applies to is gone", k.Name)
	}
	if p.undo != nil && !k.advice && !request.WithoutUndo {
		return nil, fmt.Errorf("%s %w by this user: %w", k.Name, ErrNoUndo, p.undo)
	}
	p.addLater()
	return p, nil
}

// look adds the state of a place.
func (p *plan) look(place Place) error {
	s, err := p.state(place)
	if err != nil {
		return err
	}
	if p.knob.check != nil && s.Old != s.New && p.undo == nil {
		p.undo = p.knob.check(p.target, s.Old, s.New)
	}
	p.states = append(p.states, s)
	return nil
}

// state reads the old value at a place and decides on the new one.
func (p *plan) state(place Place) (State, error) {
	old, err := p.knob.read(p.target, place)
	if err != nil {
		return State{}, p.knob.failure("read", place, err)
	}
	value := p.asked
	if p.knob.complete != nil {
		if value, err = p.knob.complete(p.target, old, p.asked); err != nil {
			return State{}, p.knob.failure("set", place, err)
		}
	}
	return State{Knob: p.knob.Name, Place: place, Old: old, New: value}, nil
}

// addLater notes what threads created since get back: what the first had. Where one thread is
// changed those that there are already are none of them.
func (p *plan) addLater() {
	if !p.knob.follows {
		return
	}
	first, since := p.states[0], uint64(0)
	if !p.all {
		since = uint64(clock.SinceBoot() / procid.Tick)
	}
	p.states = append(p.states, State{
		Knob: p.knob.Name, Place: Place{Scope: OnThreads, Later: true, Started: since}, Old: first.Old, New: first.New,
	})
}

// Unchanged says whether the value asked for is there already.
func (p *plan) Unchanged() bool {
	return !p.knob.advice && !slices.ContainsFunc(p.states, func(s State) bool { return s.Old != s.New })
}

// Run makes the change and reads it back. note is called with further states,
// before they are changed, as threads turn up that were created meanwhile.
// After an error, restore with the states takes back what was done.
func (p *plan) Run(note func([]State) error) error {
	changed := 0
	for _, s := range p.states {
		if s.Place.Later {
			continue
		}
		switch err := p.put(s); {
		case err == nil:
			changed++
		case !gone(err):
			return err
		}
	}
	if changed == 0 {
		return fmt.Errorf("%s: every place it applies to is gone", p.knob.Name)
	}
	if !p.knob.follows || !p.all {
		return nil
	}
	for range maxRounds {
		fresh, err := p.newcomers()
		if err != nil || len(fresh) == 0 {
			return err
		}
		if err := note(fresh); err != nil {
			return err
		}
		p.states = append(p.states, fresh...)
		for _, s := range fresh {
			if err := unlessGone(p.put(s)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: the process creates threads faster than they can be changed", p.knob.Name)
}

// newcomers lists threads that turned up since and do not have the new value.
func (p *plan) newcomers() ([]State, error) {
	places, err := p.target.threads()
	if err != nil {
		return nil, err
	}
	var fresh []State
	for _, place := range places {
		if slices.ContainsFunc(p.states, func(s State) bool { return s.Place == place }) {
			continue
		}
		s, err := p.state(place)
		switch {
		case gone(err):
		case err != nil:
			return nil, err
		case s.Old != s.New:
			fresh = append(fresh, s)
		}
	}
	return fresh, nil
}

// put sets the new value at a place, if the old one is still there.
func (p *plan) put(s State) (err error) {
	k := &p.knob
	held, err := k.open(p.target, s.Place)
	if err != nil {
		return k.failure("open", s.Place, err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	now, err := held.get()
	switch {
	case err != nil:
		return k.failure("read", s.Place, err)
	case now == s.New && !k.advice:
		return nil
	case now != s.Old && !k.drifts && !k.matches(s.Old, now):
		return fmt.Errorf("%s of %s became %s meanwhile", k.Name, s.Place, now)
	}
	if err := held.set(s.New); err != nil {
		return k.failure("set", s.Place, err)
	}
	if now, err = held.get(); err != nil {
		return k.failure("read back", s.Place, err)
	}
	if k.advice {
		p.result = now
		return nil
	}
	if k.matches(s.New, now) {
		return nil
	}
	// The kernel has taken a part of the value, which would be taken for somebody else's
	// when the change is taken back.
	err = fmt.Errorf("%s of %s reads back as %s instead of %s", k.Name, s.Place, now, s.New)
	return errors.Join(err, k.setOld(p.target, held, s))
}

// read returns the value at a place.
func (k *knob) read(t *Target, place Place) (value string, err error) {
	held, err := k.open(t, place)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	return held.get()
}

// failure names the place and, where the kernel did not permit it, the remedy.
func (k *knob) failure(what string, place Place, err error) error {
	if gone(err) {
		return fmt.Errorf("%s: %s: %w", k.Name, place, errPlaceGone)
	}
	if errors.Is(err, ErrBadValue) || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s %s of %s: %w", what, k.Name, place, err)
	}
	remedy := "needs the same user and, where ptrace is restricted, CAP_SYS_PTRACE"
	if k.Privilege != "" {
		remedy = "needs " + k.Privilege
	}
	return fmt.Errorf("%s %s of %s: %w; %s", what, k.Name, place, err, remedy)
}

// gone says whether an error means that a thread or process has ended or a
// descriptor was closed.
func gone(err error) bool {
	return errors.Is(err, errPlaceGone) || errors.Is(err, procid.ErrGone) || errors.Is(err, procid.ErrOtherFile) ||
		errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EBADF)
}

// unlessGone is an error, or nil where the place is gone: nothing is to be done there.
func unlessGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
