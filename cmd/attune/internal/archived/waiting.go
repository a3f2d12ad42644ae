// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/postgres"
	"github.com/attune-hpc/attune/internal/rundir"
)

// ErrNotSent means that accounts still wait on this node for the archive. What was to be done
// is done. The error says what becomes of them.
var ErrNotSent = errors.New("accounts that waited for the archive are not in it")

// sentAtOnce bounds the tasks of one transaction, sentProcesses the processes of all before the
// last of them: documents are mostly these.
const sentAtOnce, sentProcesses = 500, 10_000

// waitingFile is the archive of the accounts that another archive did not take: one for each
// place.
func waitingFile(at string) (string, error) {
	at, err := resolve(at)
	if err != nil {
		return "", err
	}
	dir, err := rundir.Current().KnowledgeDir()
	if err != nil {
		return "", err
	}
	if postgres.IsURL(at) {
		at = postgres.Name(at)
	}
	sum := sha256.Sum256([]byte(at))
	return filepath.Join(dir, fmt.Sprintf("waiting-%x.db", sum[:6])), nil
}

// wait keeps a task until the archive at a place takes it, and returns the file.
func wait(ctx context.Context, at string, t *archive.Task) (path string, err error) {
	if path, err = waitingFile(at); err != nil {
		return "", err
	}
	s, err := archive.Open(ctx, path)
	if err != nil {
		return "", err
	}
	_, err = s.Add(ctx, t)
	return path, errors.Join(err, s.Close())
}

// send adds what waits for the archive at a place. What two send at the same time is there
// once.
func send(ctx context.Context, to *archive.Store, at string) (err error) {
	path, err := waitingFile(at)
	if err != nil {
		return nil // without a state directory nothing waits
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	from, err := archive.Open(ctx, path)
	if err != nil {
		return notSent(err, path)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := sendAll(ctx, to, from); err != nil {
		return notSent(err, path)
	}
	return nil
}

// notSent is [ErrNotSent] of what waits in a file, with what to do.
func notSent(err error, path string) error {
	if errors.Is(err, archive.ErrUnreadable) { // as it will be next time
		return fmt.Errorf("%w: %w; all others are in it, so move %s away", ErrNotSent, err, path)
	}
	return fmt.Errorf("%w: %w; the next command tries again", ErrNotSent, err)
}

// sendAll moves tasks, some at a time. One that cannot be read stays, and holds up no other:
// [archive.ErrUnreadable] if all others are moved.
func sendAll(ctx context.Context, to, from *archive.Store) error {
	var tasks []*archive.Task
	var ids []string
	processes := 0
	move := func() error {
		if _, err := to.Add(ctx, tasks...); err != nil {
			return err
		}
		err := from.Remove(ctx, ids...)
		tasks, ids, processes = nil, nil, 0
		return err
	}
	err := from.EachTask(ctx, archive.Filter{}, func(id string, t *archive.Task) error {
		tasks, ids = append(tasks, t), append(ids, id)
		if processes += len(t.Account.Tree); len(tasks) < sentAtOnce && processes < sentProcesses {
			return nil
		}
		return move()
	})
	if (err == nil || errors.Is(err, archive.ErrUnreadable)) && len(tasks) > 0 {
		if err := move(); err != nil {
			return err
		}
	}
	return err
}
