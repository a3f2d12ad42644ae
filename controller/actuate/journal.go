// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// record is one line of the journal.
type record struct {
	// Op is "begin" before a change is made, and again before more of it is made;
	// "end" when nothing of it is left; "last" keeps the latest id.
	Op      string           `json:"op"`
	Time    time.Time        `json:"time"`
	Change  string           `json:"change"`
	Knob    string           `json:"knob,omitempty"`
	Process *procid.Identity `json:"process,omitempty"`
	Told    Told             `json:"told,omitzero"`
	Outcome string           `json:"outcome,omitempty"`
	// Undo stands in the line under the names of its parts.
	Undo Undos `json:"-"`
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

// read reads a line of the journal.
func (k Kinds) read(line []byte) (r record, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	r.Undo, err = k.readUndos(line)
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

// takeBack undoes a change by its record alone.
func (r record) takeBack(ctx context.Context) error {
	if len(r.Undo) == 0 && !access.Ended(*r.Process) {
		return errNoWayBack
	}
	in, done := r.in()
	defer done()
	return r.Undo.takeBack(ctx, in)
}

// errNoWayBack says that another version made the change.
var errNoWayBack = errors.New("this version of attune knows no way to take the change back")

// Journal is the undo journal of one controller: a file of JSON lines that is
// locked for as long as the controller lives. What begins and does not end is
// what has to be restored. Lines are not forced to the disk: they must survive
// the controller, not the machine, whose processes would be gone as well.
//
// A Journal is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex // guards what follows
	file *os.File
	torn bool // the last line may be half a line

	// step is called before and after each line is written, by tests; may be nil.
	step func()
}

const journalSuffix = ".journal"

// journalTries bounds the names that are tried for a journal: those of dead
// controllers with the same pid are taken.
const journalTries = 1000

// OpenJournal creates a journal in dir, which is created with mode 0700 if
// needed. Its file name begins with name and a dot, and tells where the
// processes in it are.
func OpenJournal(dir, name string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create journal directory: %w", err)
	}
	where, err := place()
	if err != nil {
		return nil, err
	}
	for i := range journalTries {
		path := filepath.Join(dir, fmt.Sprintf("%s.%d.%s%s", name, i, where, journalSuffix))
		file, err := createLocked(path)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create journal: %w", err)
		}
		return &Journal{file: file}, nil
	}
	return nil, fmt.Errorf("journals of %d controllers with pid %s in %s: remove those that are old", journalTries, name, dir)
}

// place names the pid namespace in which the pids of a journal mean something.
// The directory may be in a home that many nodes and containers share, and to
// each of them the processes of another seem to be gone.
func place() (string, error) {
	boot, err := procid.BootID()
	if err != nil {
		return "", fmt.Errorf("name journal: %w", err)
	}
	namespace, err := pidNamespace()
	return fmt.Sprintf("%s.%d", boot, namespace), err
}

func pidNamespace() (inode uint64, err error) {
	var namespace unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &namespace); err != nil {
		return 0, fmt.Errorf("name journal: pid namespace: %w", err)
	}
	return namespace.Ino, nil
}

// createLocked creates a file that is locked. os.ErrExist if there is one by
// this name, or if a Restore took the new one for what a dead controller left,
// between its creation and its lock.
func createLocked(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || (err == nil && !named(file, path)) {
		err = os.ErrExist
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// begin writes down what is about to be changed, all of it when it is more than
// was written down before.
func (j *Journal) begin(change, knob string, process procid.Identity, p *Plan) error {
	return j.append(record{Op: "begin", Change: change, Knob: knob, Process: &process, Undo: p.Undo, Told: p.Told})
}

// end writes down that nothing of a change is left in the process.
func (j *Journal) end(change, outcome string) error {
	return j.append(record{Op: "end", Change: change, Outcome: outcome})
}

func (j *Journal) append(r record) error {
	if j.step != nil {
		j.step()
		defer j.step()
	}
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode journal record: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn { // a full disk must not spoil the line that it has room for again
		line = append([]byte{'\n'}, line...)
	}
	_, err = j.file.Write(append(line, '\n'))
	if j.torn = err != nil; j.torn {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close removes the journal if no change is left in force, and unlocks it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	open, err := Kinds{}.openChanges(j.file.Name())
	if err == nil && len(open) == 0 {
		err = os.Remove(j.file.Name())
	}
	return errors.Join(err, j.file.Close())
}
