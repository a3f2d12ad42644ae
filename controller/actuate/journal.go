// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// Word is a stretch of a process' memory that a change replaces. It lies in a
// mapped file, so that a later controller can tell whether the address still
// means the same thing.
type Word struct {
	// What names it for people, e.g. "libopen-pal.so.40:opal_progress_yield_when_idle".
	What string `json:"what"`
	// ImagePath, ImageInode and ImageBias identify the mapped object.
	ImagePath  string `json:"image_path"`
	ImageInode uint64 `json:"image_inode"`
	ImageBias  uint64 `json:"image_bias"`
	// Address in the process.
	Address uint64 `json:"address"`
	// Old and New contents; the same length.
	Old []byte `json:"old"`
	New []byte `json:"new"`
	// Slot says that threads jump through it: it changes in one go only. Origin is
	// what makes it one.
	Slot   bool           `json:"slot,omitempty"`
	Origin objfile.Origin `json:"origin,omitzero"`
	// ReadOnly says that the process itself may not write there.
	ReadOnly bool `json:"read_only,omitempty"`
	// Thread whose copy of a thread-local variable it is; nil: no such copy.
	Thread *Thread `json:"thread,omitempty"`
}

// record is one line of the journal.
type record struct {
	// Op is "begin" before a change is made, "more" before more of it is made,
	// "end" when nothing of it is left; "last" keeps the latest id.
	Op       string           `json:"op"`
	Time     time.Time        `json:"time"`
	Change   string           `json:"change"`
	Knob     string           `json:"knob,omitempty"`
	Process  *procid.Identity `json:"process,omitempty"`
	Words    []Word           `json:"words,omitempty"`
	Settings []system.State   `json:"settings,omitempty"`
	Library  *Library         `json:"library,omitempty"`
	Patched  *Patched         `json:"patched,omitempty"`
	Named    *Named           `json:"named,omitempty"`
	Ranks    *Ranks           `json:"ranks,omitempty"`
	Stream   *Stream          `json:"stream,omitempty"`
	Told     told             `json:"told,omitzero"`
	Outcome  string           `json:"outcome,omitempty"`
}

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

// begin writes down what is about to be changed.
func (j *Journal) begin(change, knob string, process procid.Identity, p *plan) error {
	return j.append(record{
		Op: "begin", Change: change, Knob: knob, Process: &process, Words: p.words, Settings: p.settings,
		Library: p.library, Patched: p.patched, Named: p.named, Ranks: p.ranks, Stream: p.stream, Told: p.told,
	})
}

// more writes down what else is about to be changed.
func (j *Journal) more(change string, settings []system.State) error {
	return j.append(record{Op: "more", Change: change, Settings: settings})
}

// loaded writes down the handle of a library.
func (j *Journal) loaded(change string, library *Library) error {
	return j.append(record{Op: "more", Change: change, Library: library})
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
	open, err := openChanges(j.file.Name())
	if err == nil && len(open) == 0 {
		err = os.Remove(j.file.Name())
	}
	return errors.Join(err, j.file.Close())
}
