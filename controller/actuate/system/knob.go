// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/symname"
)

// Errors that tell the reasons apart.
var (
	// ErrUnknownKnob means that there is no knob of that name.
	ErrUnknownKnob = errors.New("unknown knob")
	// ErrBadValue means that the value is not one that the knob takes.
	ErrBadValue = errors.New("bad value")
	// errPlaceGone means that a thread has ended or a file was closed.
	errPlaceGone = errors.New("no longer there")
)

// ErrNoUndo means that what was done cannot be taken back.
const ErrNoUndo = access.Final("cannot be taken back")

// Knob describes one thing that can be changed.
type Knob struct {
	// Name, e.g. "socket.tcp_nodelay".
	Name string
	// On says what it applies to, and what @NUMBER names.
	On Scope
	// Values that it takes, for people.
	Values string
	// Examples of values, for shell completion.
	Examples []string
	// Description in a sentence or two.
	Description string
	// Privilege that it needs beyond owning the process; empty: none.
	Privilege string
	// Undo says how far it can be taken back.
	Undo string
}

// Scope is what a knob applies to.
type Scope string

// The scopes.
const (
	// OnThreads: every thread; @TID for one.
	OnThreads Scope = "threads"
	// OnSockets: every socket of the kind; @FD for one.
	OnSockets Scope = "sockets"
	// OnPipes: every pipe; @FD for one.
	OnPipes Scope = "pipes"
	// OnProcess: the process as a whole.
	OnProcess Scope = "process"
	// OnCgroup: the cgroup that the process is in.
	OnCgroup Scope = "cgroup"
	// OnMemory: mappings named by the value.
	OnMemory Scope = "memory"
)

// exactly is the Undo of knobs whose old value can be put back as it was.
const exactly = "exact"

// knob is a Knob with what it takes to change it.
type knob struct {
	Knob
	// parse returns the canonical form of a value, or ErrBadValue.
	parse func(text string) (string, error)
	// places lists where the knob is in a process; on is a thread or
	// descriptor, or Everywhere.
	places func(t *Target, on int) ([]Place, error)
	// open takes hold of a place, or returns errPlaceGone.
	open func(t *Target, p Place) (slot, error)
	// complete makes the value to be set at a place from the one there and the
	// one asked for, and refuses what would harm; nil: the one asked for.
	complete func(t *Target, old, asked string) (string, error)
	// check says why the old value could not be put back; nil: it always can.
	check func(t *Target, old, value string) error
	// harm says what a value would do to what a place has in use by now, so that it must
	// not be set; nil: no value does.
	harm func(t *Target, place Place, value string) error
	// same says whether a value read is the one that was set; nil: equal.
	same func(set, read string) bool
	// follows: what threads are created meanwhile is changed too.
	follows bool
	// drifts: the kernel changes the value by itself.
	drifts bool
	// advice: there is no value to put back.
	advice bool
}

// slot is a place that is held open. Close lets go of it.
type slot interface {
	get() (string, error)
	set(value string) error
	Close() error
}

// Place is where a knob is.
type Place struct {
	// Scope of the knob.
	Scope Scope `json:"scope"`
	// Number of the thread or descriptor; 0 for other scopes.
	Number int `json:"number,omitempty"`
	// Started is the thread's start time, in clock ticks since boot; with Later, the least
	// one of theirs.
	Started uint64 `json:"started,omitempty"`
	// Later stands for every thread created since; Number is 0.
	Later bool `json:"later,omitempty"`
	// Device and Inode of the descriptor's file or the cgroup's directory.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	// Path of the cgroup's directory.
	Path string `json:"path,omitempty"`
}

// String says where, e.g. "thread 4711", "fd 7".
func (p Place) String() string {
	switch p.Scope {
	case OnThreads:
		if p.Later {
			return "threads created since"
		}
		return fmt.Sprintf("thread %d", p.Number)
	case OnSockets, OnPipes:
		return fmt.Sprintf("fd %d", p.Number)
	case OnCgroup:
		return p.Path
	}
	return "the process"
}

// State is a knob at one place, before and after a change.
type State struct {
	// Knob is its name.
	Knob string `json:"knob"`
	// Place is where.
	Place Place `json:"place"`
	// Old and New value.
	Old string `json:"old"`
	New string `json:"new"`
}

func knobs() []knob {
	return slices.Concat(threadKnobs(), socketKnobs(), pipeKnobs(), limitKnobs(), memoryKnobs(), cgroupKnobs())
}

// Knobs returns every knob in the order of the reference page.
func Knobs() []Knob {
	all := knobs()
	list := make([]Knob, len(all))
	for i, k := range all {
		list[i] = k.Knob
	}
	return list
}

// known are all knobs, made once: every look at a change finds its knob.
var known = sync.OnceValue(knobs)

// find returns the knob of a name, whatever its case.
func find(name string) (knob, error) {
	var names []string
	for _, k := range known() {
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return knob{}, UnknownKnob(name, names)
}

// UnknownKnob is [ErrUnknownKnob] with those of the names that are close.
func UnknownKnob(name string, names []string) error {
	const most = 4
	near := symname.Near(name, names, most)
	if len(near) == 0 {
		return fmt.Errorf("%w %q", ErrUnknownKnob, name)
	}
	return fmt.Errorf("%w %q; did you mean %s?", ErrUnknownKnob, name, strings.Join(near, ", "))
}

// matches applies same.
func (k *knob) matches(set, read string) bool {
	return set == read || k.same != nil && k.same(set, read)
}
