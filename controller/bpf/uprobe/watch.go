// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/internal/procid"
)

// watchTable holds which process is watched at which point, and reads what was seen.
// Its methods may be called from any goroutine.
type watchTable struct {
	mu       sync.Mutex // guards what follows; a leaf lock
	memory   watchMemory
	expected expectations
	interval *ebpf.Variable
	current  uint32
	points   map[uint16]*definedPoint
	index    map[uprobesWatchKey]*watchEntry
	untold   map[uint32]uint64 // records that watches had lost, by process, when they were taken away
}

type definedPoint struct {
	config pointConfig
	files  int
}

func (t *watchTable) open(from *uprobeMaps) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interval = from.Interval
	t.points = make(map[uint16]*definedPoint)
	t.index = make(map[uprobesWatchKey]*watchEntry)
	t.untold = make(map[uint32]uint64)
	if err := t.memory.open(from); err != nil {
		return err
	}
	return t.expected.open(&t.memory, from)
}

func (t *watchTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.points, t.index = nil, nil
	return errors.Join(t.memory.close(), t.expected.shared.Unmap())
}

// define notes that the point is attached to one more file.
func (t *watchTable) define(point uint16, config pointConfig) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[point]
	if defined == nil {
		defined = &definedPoint{config: config}
		t.points[point] = defined
	}
	if !defined.config.equal(config) {
		return fmt.Errorf("%w: point %d has another delivery, predicate or program elsewhere", errSpec, point)
	}
	defined.files++
	return nil
}

func (t *watchTable) undefine(point uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[point]
	if defined == nil {
		return
	}
	if defined.files--; defined.files == 0 {
		delete(t.points, point)
		t.expected.drop(point)
	}
}

// Watch begins to take the hits of an attached point in one process. Watching
// it already is no error. Children of the process are not watched. If the
// process has ended, the error is procid.ErrGone.
func (t *watchTable) Watch(w Watch) error {
	_, err := t.begin(w)
	return err
}

// begin is Watch; began says that it was not watched already.
func (t *watchTable) begin(w Watch) (began bool, err error) {
	began, err = t.watch(w)
	if !began && w.Space != nil {
		_ = w.Space.Close() // read only
	}
	return began, err
}

// watch is begin; the watch has the space if it began.
func (t *watchTable) watch(w Watch) (began bool, err error) {
	if w.StartTicks == 0 {
		identity, err := procid.Of(w.PID)
		if err != nil {
			return false, fmt.Errorf("watch process %d: %w", w.PID, err)
		}
		w.StartTicks = identity.StartTicks
	}
	mapped := readMapped(w.Space, &t.memory.keys.objects.rows, &t.mu)
	defer mapped.forget() // behind the unlocking
	t.mu.Lock()
	defer t.mu.Unlock()
	key := uprobesWatchKey{Process: uint32(w.PID), Point: uint32(w.Point)}
	defined := t.points[w.Point]
	if defined == nil {
		return false, fmt.Errorf("watch process %d: point %d is not attached", w.PID, w.Point)
	}
	if known := t.index[key]; known != nil && known.start == w.StartTicks {
		return false, nil
	}
	// One of an earlier process with this pid, of whose end nobody has told.
	if err := t.remove(key); err != nil {
		return false, err
	}
	if err := t.add(key, w, mapped, defined.config); err != nil {
		return false, fmt.Errorf("watch process %d at point %d: %w", w.PID, w.Point, err)
	}
	return true, nil
}

// add watches a process, by what it has claimed at its first hit if it was expected.
func (t *watchTable) add(key uprobesWatchKey, w Watch, mapped *mappedObjects, config pointConfig) error {
	entry, err := t.expected.adopt(key, w.StartTicks, config)
	if entry == nil && err == nil {
		entry, err = t.memory.add(key, w, mapped, config)
	}
	if entry != nil {
		t.index[key] = entry
	}
	return err
}

// UnwatchProcess stops taking hits; what was counted is gone. It is no error
// if the process was not watched.
func (t *watchTable) UnwatchProcess(pid int, point uint16) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remove(uprobesWatchKey{Process: uint32(pid), Point: uint32(point)})
}

func (t *watchTable) remove(key uprobesWatchKey) error {
	entry := t.index[key]
	if entry == nil {
		return nil
	}
	lost, err := t.memory.remove(key, entry)
	if err != nil {
		return fmt.Errorf("unwatch process %d at point %d: %w", key.Process, key.Point, err)
	}
	delete(t.index, key)
	if lost > 0 {
		t.untold[key.Process] += lost
	}
	return nil
}

// Expect has so many processes that are yet to come watched from their first
// hit on, without anybody having to be told of them in time: Watch takes over
// what was counted until then. Points that capture cannot be expected, and if
// there is no room less is expected; neither is an error, since Watch serves
// these all the same. What was expected is, until the point is detached.
func (t *watchTable) Expect(e Expectation, ahead int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[e.Point]
	if defined == nil {
		return fmt.Errorf("expect processes: point %d is not attached", e.Point)
	}
	if !defined.config.program.Empty() {
		return nil
	}
	return t.expected.add(e, ahead, defined.config)
}

// Expected says whether a process that is watched was expected at the point, and
// is watched since its first hit.
func (t *watchTable) Expected(pid int, point uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	return entry != nil && entry.adopted
}

// takeLost hands over what was lost of each process since the last call (Aggregate.Lost),
// as far as that is known: a hit under way when its watch is taken away counts in the
// ring's own sum alone. A process may come several times; visit must not call Uprobes.
func (t *watchTable) takeLost(visit func(process uint32, lost uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for process, lost := range t.untold {
		visit(process, lost)
	}
	clear(t.untold)
	if t.memory.watches.Elements == nil {
		return // closed
	}
	for key, entry := range t.index {
		if lost := t.memory.newlyLost(entry); lost > 0 {
			visit(key.Process, lost)
		}
	}
}

// watchAll begins the spec's watches and returns those that there were not before, by
// another file of the point. It does so after an error too, which ends it.
func (t *watchTable) watchAll(spec Spec) (begun []Watch, err error) {
	for _, w := range spec.Watches {
		w.Point = spec.Point
		began, err := t.begin(w)
		if err != nil {
			return begun, err
		}
		if began {
			begun = append(begun, w)
		}
	}
	return begun, nil
}

// unwatchAll ends what watchAll has begun.
func (t *watchTable) unwatchAll(begun []Watch) {
	for _, w := range begun {
		_ = t.UnwatchProcess(w.PID, w.Point) // the kernel's map has it
	}
}
