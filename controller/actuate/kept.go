// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// keptSuffix is not journalSuffix: what a person changed deliberately is meant
// to outlive the command, so Restore must not find it.
const keptSuffix = ".kept"

// lockPoll is how often a lock is tried that another command holds.
const lockPoll = 20 * time.Millisecond

// Kept is the journal of what a user changed by hand on one node and wants to
// keep until they undo it. It is locked, for one command at a time, until
// Close. Changes of processes that have ended are dropped when it is opened, if the disk has
// room for that.
// Its methods belong to one goroutine.
type Kept struct {
	*Journal
	undos newUndos
	path  string
	last  int
}

// OpenKept opens the journal of a node and its pid namespace in dir, which is
// created with mode 0700 if needed. A home may be shared by many nodes. It
// waits until ctx ends for another command that has it open.
func (k Kinds) OpenKept(ctx context.Context, dir, node string) (*Kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create journal directory: %w", err)
	}
	namespace, err := procid.Namespace()
	if err != nil {
		return nil, fmt.Errorf("name journal: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s.%d%s", strings.ReplaceAll(node, "/", "_"), namespace, keptSuffix))
	file, err := lockKept(ctx, path)
	if err != nil {
		return nil, err
	}
	kept := &Kept{Journal: &Journal{file: file}, undos: k.Undos, path: path}
	kept.below = func() []record { return kept.undos.ofControllers(dir) }
	if err := kept.compact(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), kept.Close())
	}
	return kept, nil
}

// lockKept locks the file that has the path now: compact puts another in its
// place.
func lockKept(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && named(file, path) {
			return file, nil
		}
		file.Close()
		if !beat.Pause(ctx, lockPoll) {
			return nil, fmt.Errorf("journal %s is in use by another command: %w", path, ctx.Err())
		}
	}
}

// compact replaces the file by one with what is still in force. A file that cannot be
// replaced, as on a full disk, serves as it is: its changes can be undone.
func (k *Kept) compact() error {
	open, err := k.undos.openChanges(k.path)
	if err != nil {
		return err
	}
	if k.last, err = lastID(k.path); err != nil {
		return err
	}
	lines := []record{{Op: "last", Change: strconv.Itoa(k.last), Time: time.Now().UTC()}}
	lines = append(lines, notOver(open)...)
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	for _, r := range lines {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	k.torn = k.replace(content.Bytes()) != nil
	return nil
}

// replace puts a new file, locked already, in the place of the old one.
func (k *Kept) replace(content []byte) error {
	temporary := k.path + ".new"
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(temporary, k.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary), file.Close())
	}
	old := k.file
	k.file = file
	return old.Close()
}

// ofControllers reads what controllers have in force by the journals in dir, the latest last. A
// controller gives a change up when it sees that somebody has made another one on top of it, and
// then nobody but that one knows what was there before both. What only forks have is left out:
// nothing is made on top of it elsewhere. A journal that cannot be read is somebody else's.
func (n newUndos) ofControllers(dir string) (all []record) {
	paths, err := journalsIn(dir)
	if err != nil {
		return nil
	}
	for _, path := range paths {
		open, _ := n.openChanges(path) // its controller may be ending
		all = append(all, slices.DeleteFunc(open, func(r record) bool { return r.Undone || !r.left() })...)
	}
	sortByTime(all)
	return all
}

func sortByTime(all []record) {
	slices.SortStableFunc(all, func(x, y record) int { return x.Time.Compare(y.Time) })
}

// lastID is the greatest id that was ever given.
func lastID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	last := 0
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue // half a line of a command that was killed
		}
		if n, err := strconv.Atoi(r.Change); err == nil {
			last = max(last, n)
		}
	}
	return last, nil
}

// NextID returns an id that no change has had.
func (k *Kept) NextID() string {
	k.last++
	return strconv.Itoa(k.last)
}

// IDs returns those of all changes in force, in the order they were made.
func (k *Kept) IDs() ([]string, error) {
	open, err := k.undos.openChanges(k.path)
	ids := make([]string, len(open))
	for i, r := range open {
		ids[i] = r.Change
	}
	return ids, err
}

// Settle drops a change of which nothing is left to be undone: a call that was
// made.
func (k *Kept) Settle(id string) error { return k.end(id, "done") }

// Close unlocks the journal.
func (k *Kept) Close() error { return k.file.Close() }

// byHand reads what was changed by hand on this boot of the node, by the journals in dir of
// this pid namespace: several nodes may share the directory. An error leaves out what cannot be
// read.
func (n newUndos) byHand(dir string) (all []record, err error) {
	namespace, err := procid.Namespace()
	if err != nil {
		return nil, err
	}
	boot, err := procid.BootID()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("*.%d%s", namespace, keptSuffix)))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		open, e := n.openChanges(path)
		err = errors.Join(err, e)
		all = append(all, slices.DeleteFunc(open, func(r record) bool { return r.Process.BootID != boot })...)
	}
	return all, err
}
