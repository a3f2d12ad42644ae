// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// Process is what Sites needs of a process.
type Process interface {
	// PID in the controller's pid namespace.
	PID() int
	proc.Holder
	// Memory is what DMLib shares with the controller; nil without DMLib.
	Memory() *shm.Memory
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
}

// Mapper is what a [Process] may be as well: it has memory mapped, readable and
// executable, where DMLib is not in the process. Then actions are served there
// too; measuring needs DMLib.
type Mapper interface {
	// Map maps size bytes at start; unix.EEXIST where something is mapped.
	Map(ctx context.Context, start, size uint64) error
}

// Rewriter is what a [Process] may be as well: its threads can be stopped while
// more than one byte of its code is changed. Then functions are patched too of
// which one byte does not do.
type Rewriter interface {
	// Rewrite makes changes while no thread is within. The error says why some were
	// not made.
	Rewrite(ctx context.Context, changes ...proc.Change) error
}

// Function is a function in a process, as objfile.ResolveIn finds it.
type Function struct {
	Image  objfile.Image
	Symbol objfile.Symbol
}

// address of its first instruction in the process.
func (f Function) address() uint64 { return f.Image.Address(f.Symbol.Value) }

// Same says whether both are one function at one address.
func (f Function) Same(other Function) bool { return placeOf(f) == placeOf(other) }

// Errors of a Sites, besides those that wrap [patch.ErrUnpatchable].
var (
	// ErrNoDMLib means that nobody in the process can map memory for patches.
	ErrNoDMLib = errors.New("DMLib is not in the process")
	// ErrConflict means that another action on the function excludes this one.
	ErrConflict = errors.New("another action on the function excludes it")
	// ErrUnknown means that there is no action of that name.
	ErrUnknown = errors.New("no such action in the process")
	// ErrTouched means that the code is not what it should be: somebody else
	// changes it as well. Nothing was written.
	ErrTouched = errors.New("code is not what its file says: a debugger, a uprobe or another tool is at work")
)

// Bytes is code that a patch changes: one byte of it, or a few (see
// [patch.Wide]). It is all that a journal has to know: writing Old back where
// New stands undoes everything that was done at that place, see [Restore].
type Bytes struct {
	// Address in the process.
	Address uint64 `json:"address"`
	// Device and Inode of the file that is mapped there, and which byte of it
	// stands at Address.
	Device     uint64 `json:"device"`
	Inode      uint64 `json:"inode"`
	FileOffset uint64 `json:"file_offset"`
	// Old is the code without the patch, New that with it, equally long.
	Old []byte `json:"old"`
	New []byte `json:"new"`
}

// Sites owns the patched entries and returns of one process.
type Sites struct {
	process   Process
	functions *Functions

	mu      sync.Mutex // guards what follows; held while something is changed
	arenas  []*patch.Arena
	windows []*patch.Window
	known   map[place]*function
	errno   *uint64 // address of __errno_location; nil: not looked for yet
}

// place tells functions apart: after a library was unloaded another one may lie
// where it lay.
type place struct {
	address uint64
	key     Key
}

func placeOf(f Function) place { return place{f.address(), KeyOf(f)} }

// function is a function with what is done at its entry and exits.
type function struct {
	Function
	entry *spot
	exits []*spot // nil: not looked for yet
	tails bool    // some of them are jumps to other functions
	do    doing
}

// NewSites returns the owner for a process in which nothing is patched yet, or
// which inherited patches from its parent. There must be one only. functions
// is shared by all processes of a node.
func NewSites(process Process, functions *Functions) *Sites {
	return &Sites{process: process, functions: functions, known: make(map[place]*function)}
}

// Prepare finds out whether an action can be done on a function, has memory
// mapped for it (DMLib does it at its next hook or in the start gate, and ctx
// bounds the wait), and returns the code that Add will change, for the
// journal. Nothing is changed yet. Preparing again costs little. The error
// wraps [patch.ErrUnpatchable] where the function's code is the reason and
// [patch.ErrAction] where the action is, else it is [ErrNoDMLib],
// [ErrConflict] or one of the mailbox.
func (s *Sites) Prepare(ctx context.Context, f Function, a patch.Action) ([]Bytes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.writer()
	if err != nil {
		return nil, err
	}
	fn, do, err := s.plan(ctx, w, "", f, a)
	if err != nil {
		return nil, err
	}
	var code []Bytes
	for _, p := range fn.spots(do) {
		if _, err := s.program(ctx, w, p, do.at(p == fn.entry)); err != nil {
			return nil, err
		}
		if err := w.rehearse(ctx, p); err != nil {
			return nil, err
		}
		code = append(code, p.bytes(fn.Function))
	}
	return code, nil
}

// plan finds the function, with everything mapped that it needs, and what
// would be done there with one more action. The caller holds s.mu.
func (s *Sites) plan(ctx context.Context, w writer, name string, f Function, a patch.Action) (*function, doing, error) {
	if err := patch.Check(a); err != nil {
		return nil, doing{}, err
	}
	if s.functions.kernel(KeyOf(f)) {
		return nil, doing{}, ErrWatched
	}
	fn, step := s.function(f), patch.StepOf(name, a)
	if err := s.need(ctx, w, fn, !step.AtExit(), step.AtExit()); err != nil {
		return nil, doing{}, err
	}
	do, err := fn.do.with(step)
	switch {
	case err == nil && fn.tails && step.TakesResult():
		err = errTail
	case err == nil && step.EachCall():
		err = fn.straight(w)
	}
	return fn, do, err
}

// Add does an action on a function from now on, in addition to whatever else
// is done there. name is the caller's, unique in the process. At an entry,
// calls are counted first, then parameters are changed, then calls made, then
// the function is replaced or removed, which exclude each other. If the error
// is not nil nothing has changed.
func (s *Sites) Add(ctx context.Context, name string, f Function, a patch.Action) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.named(name) != nil {
		return fmt.Errorf("an action named %q is there already", name)
	}
	w, err := s.writer()
	if err != nil {
		return err
	}
	fn, do, err := s.plan(ctx, w, name, f, a)
	if err != nil {
		return err
	}
	if err := s.functions.act(KeyOf(f)); err != nil {
		return err
	}
	if err := s.change(ctx, w, fn, do); err != nil {
		s.functions.rest(KeyOf(f))
		return err
	}
	return nil
}

// Drop ends an action. What else is done at the function goes on without a hit
// missed; if nothing is, its code is what it was, or the error says that the
// jump, which does nothing any more, stays until threads can be stopped for
// taking it out. [ErrUnknown] if there is none of that name. A library that was
// unloaded meanwhile is no error.
func (s *Sites) Drop(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn := s.named(name)
	if fn == nil {
		return ErrUnknown
	}
	w, err := s.writer()
	if err == nil {
		err = s.change(ctx, w, fn, fn.do.without(name))
	}
	if err == nil || errors.Is(err, errStays) {
		s.functions.rest(KeyOf(fn.Function))
	}
	return err
}

// named finds the function of an action. The caller holds s.mu.
func (s *Sites) named(name string) *function {
	for _, fn := range s.known {
		if fn.do.has(name) {
			return fn
		}
	}
	return nil
}

// Where says at which places of a function a point measures.
type Where struct {
	// Entry of the function.
	Entry bool
	// Exits of the function; with Entry, durations are measured, which is refused
	// where the function may jump to another one in tail position.
	Exits bool
	// Beside lets jumps reach into the function behind this one. Our own uprobes
	// keep away from there, but a breakpoint of another tool at the entry of that
	// function would lead the jump astray, and end the process.
	Beside bool
	// Result says that what the function returns is wanted at each exit.
	Result bool
}

func (s *Sites) writer() (writer, error) {
	w := writer{memory: s.process.Memory(), process: s.process, pid: s.process.PID()}
	w.rewriter, _ = s.process.(Rewriter)
	if w.memory == nil {
		var ok bool
		if w.mapper, ok = s.process.(Mapper); !ok {
			return writer{}, ErrNoDMLib
		}
		return w, nil
	}
	app := w.memory.App()
	if !app.Ready || app.PatchEntry == 0 {
		return writer{}, fmt.Errorf("%w, or serves no patches there", ErrNoDMLib)
	}
	return w, nil
}

// Forget drops what is kept of a process that has ended.
func (s *Sites) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fn := range s.known {
		for range fn.do.steps {
			s.functions.rest(KeyOf(fn.Function))
		}
		s.functions.ends(KeyOf(fn.Function), len(fn.do.numbers()))
	}
	clear(s.known)
}
