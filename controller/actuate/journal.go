// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

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

	// below reads what other journals have in force, the latest last, for changes that are
	// made on top of that; nil: nobody looks.
	below func() []record

	// step is called with the op before and after each line is written, by tests; may be nil.
	step func(op string)
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
	namespace, err := procid.Namespace()
	if err != nil {
		return "", fmt.Errorf("name journal: %w", err)
	}
	return fmt.Sprintf("%s.%d", boot, namespace), nil
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

func named(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}

// begin writes down what is about to be changed, all of it when it is more than
// was written down before. The plan keeps its own undo: if the change fails or is rolled back,
// what lies below it is still in force.
func (j *Journal) begin(change, knob string, process procid.Identity, p *Plan) error {
	r := begun(change, knob, process, p)
	if j.below != nil {
		for _, below := range slices.Backward(j.below()) {
			r = r.onto(below)
		}
	}
	return j.append(r)
}

// begun is the record of a change that is about to be made, or was.
func begun(change, knob string, process procid.Identity, p *Plan) record {
	return record{Op: "begin", Change: change, Knob: knob, Process: &process, Undo: p.Undo, Told: p.Told, Lineage: p.lineage, Undone: p.undone}
}

// end writes down that nothing of a change is left in the process.
func (j *Journal) end(change, outcome string) error {
	return j.append(record{Op: "end", Change: change, Outcome: outcome})
}

func (j *Journal) append(r record) error {
	if j.step != nil {
		j.step(r.Op)
		defer j.step(r.Op)
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
	open, err := newUndos{}.openChanges(j.file.Name())
	if err == nil && len(open) == 0 {
		err = os.Remove(j.file.Name())
	}
	return errors.Join(err, j.file.Close())
}

// journalsIn lists the journals of this node and pid namespace.
func journalsIn(dir string) ([]string, error) {
	where, err := place()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*."+where+journalSuffix))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	return paths, nil
}

// HasJournals says whether there are journals of this node and pid namespace in dir.
func HasJournals(dir string) (bool, error) {
	paths, err := journalsIn(dir)
	return len(paths) > 0, err
}

// RemoveOld removes from dir, which no other node has, the journals of earlier boots: all of
// their processes have ended, and nobody else will look at them.
func RemoveOld(dir string) error {
	boot, err := procid.BootID()
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	errs := []error{err}
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), ".") // the last ones: boot, namespace, suffix
		if n := len(parts); n > 3 && parts[n-3] != boot {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
