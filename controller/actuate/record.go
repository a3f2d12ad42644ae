// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// record is one line of the journal.
type record struct {
	// Op is "begin" before a change is made, and again before more of it is made;
	// "held" when it is left to the next controller; "end" when nothing of it is left;
	// "last" keeps the latest id.
	Op      string           `json:"op"`
	Time    time.Time        `json:"time"`
	Change  string           `json:"change"`
	Knob    string           `json:"knob,omitempty"`
	Process *procid.Identity `json:"process,omitempty"`
	// Lineage is of the forks that have taken the change along; zero: none has.
	Lineage access.Lineage `json:"lineage,omitzero"`
	// Undone in the process: only the forks may have it.
	Undone  bool   `json:"undone,omitempty"`
	Told    Told   `json:"told,omitzero"`
	Outcome string `json:"outcome,omitempty"`
	// Until is when a change that is held is to be taken back, as [SinceBoot] counts,
	// and Lease for how long the next controller needs no word of it.
	Until time.Duration `json:"until,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	// Undo stands in the line under the names of its parts.
	Undo Undos `json:"-"`

	over bool // see markOver
}

// MarshalJSON implements [json.Marshaler].
func (r record) MarshalJSON() ([]byte, error) {
	type fields record
	line, err := json.Marshal(fields(r))
	if err != nil {
		return nil, err
	}
	return r.Undo.appendTo(line)
}

// newUndos make an empty undo each, for what the journal may have beside words.
type newUndos []func() Undo

// read reads a line of the journal.
func (n newUndos) read(line []byte) (r record, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	r.Undo, err = n.parts(line)
	return r, err
}

// in is where the change of a record was made, as far as the journal tells. The
// caller calls done when it has looked.
func (r record) in() (in Changed, done func()) {
	process := access.ProcessOf(*r.Process)
	return Changed{Process: process}, process.Close
}

// any says whether that is so of a part of the change.
func (r record) any(is func(About) bool) bool {
	in, done := r.in()
	defer done()
	return r.Undo.any(in, is)
}

// overlaps says whether two changes are of the same thing.
func (r record) overlaps(o record) bool {
	return r.Undo.overlaps(o.Undo, r.Process.SameProcess(*o.Process))
}

// onto returns the record of a change that gives back what was there before another one, where
// it was made on top of that.
func (r record) onto(below record) record {
	r.Undo = slices.Clone(r.Undo)
	for i := range r.Undo {
		for _, part := range below.Undo {
			above, ok := r.Undo[i].(stacked)
			if !ok {
				break
			}
			if on := above.Onto(part, below.Process.SameProcess(*r.Process)); on != nil {
				r.Undo[i], r.Told = on, Told{} // its undo says it
			}
		}
	}
	return r
}

// takeBack undoes a change by its record alone, which write writes anew, in forks as well, for
// whose locks it waits or not; in none where nothing of it is left.
func (r record) takeBack(ctx context.Context, write func(record) error, f *forks, wait bool) error {
	if len(r.Undo) == 0 && !access.Ended(*r.Process) {
		return errNoWayBack
	}
	in, done := r.in()
	defer done()
	in.rewrite = func() error { return write(r) }
	var err error
	if !r.Undone {
		err = r.Undo.takeBack(ctx, in)
	}
	if r.over || err != nil && !final(err) {
		return err
	}
	inForks := f.takeBack(ctx, in, r.Undo, r.Lineage, wait)
	if inForks != nil && !final(inForks) && !r.Undone {
		r.Undone, r.Undo = true, r.Undo.inFork()
		inForks = errors.Join(inForks, write(r))
	}
	return errors.Join(err, inForks)
}

// errNoWayBack says that another version made the change.
var errNoWayBack = errors.New("this version of attune knows no way to take the change back")

// parts reads the parts that the line of a record has.
func (n newUndos) parts(line []byte) (parts Undos, err error) {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(line, &texts); err != nil {
		return nil, err
	}
	empty := []Undo{new(writtenWords)}
	for _, newUndo := range n {
		empty = append(empty, newUndo())
	}
	for _, part := range empty {
		text, ok := texts[part.Kind()]
		if !ok {
			continue
		}
		if err := json.Unmarshal(text, part); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// maxLine bounds a line of the journal: a setting in each of 100,000 threads.
const maxLine = 32 << 20

// openChanges returns the records that begin and do not end, in the order of their
// first begin. One that begins again replaces what it said before.
func (n newUndos) openChanges(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var open []record
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r, err := n.read(lines.Bytes())
		if err != nil {
			continue
		}
		same := func(o record) bool { return o.Change == r.Change }
		switch at := slices.IndexFunc(open, same); {
		case r.Op == "begin" && r.Process != nil && at >= 0:
			r.Time = open[at].Time
			open[at] = r
		case r.Op == "begin" && r.Process != nil:
			open = append(open, r)
		case r.Op == "held" && at >= 0:
			open[at].Until, open[at].Lease = r.Until, r.Lease
		case r.Op == "end":
			open = slices.DeleteFunc(open, same)
		}
	}
	return open, lines.Err()
}

// MaxHold bounds for how long a change is held for the next controller, whatever a journal
// says.
const MaxHold = 2 * time.Minute

// heldAt says whether a change is held for the next controller at a time since boot.
func (r record) heldAt(now time.Duration) bool {
	return r.Until > now && r.Until-now <= MaxHold && !r.over
}

// markOver notes of which records nothing can be left, neither in a process nor in its forks. It
// looks at the processes first: what one forks it forks before it ends.
func markOver(journals ...[]record) {
	var all []*record
	for _, open := range journals {
		for i := range open {
			if !open[i].left() {
				all = append(all, &open[i])
			}
		}
	}
	var look access.Look
	for _, r := range all {
		found, err := look.Of(*r.Process, r.Lineage)
		r.over = len(found) == 0 && err == nil
	}
}

// notOver returns the records of which something may be left.
func notOver(open []record) []record {
	markOver(open)
	return slices.DeleteFunc(open, func(r record) bool { return r.over })
}

// left says whether something of a change can be left beside what forks have of it: its process
// lives, or it changed what outlives a process. Advice leaves nothing.
func (r record) left() bool {
	return (!access.Ended(*r.Process) || r.any(func(u About) bool { return u.Outlives })) && !r.any(func(u About) bool { return u.Spent })
}

// summary is the change in words.
func (r record) summary() Told {
	if r.Told != (Told{}) {
		return r.Told
	}
	in, done := r.in()
	defer done()
	return r.Undo.told(in)
}
