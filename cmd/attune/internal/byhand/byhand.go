// SPDX-License-Identifier: Apache-2.0

package byhand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/rundir"
)

// UndoAll takes back what this user has changed by hand, and what an attune run or attach of
// theirs has that was killed. What a living one has changed it leaves alone, and what the
// service has.
func UndoAll(ctx context.Context, p *cli.Env) error {
	kept, err := Open(ctx)
	if err != nil {
		return errors.Join(UndoKilled(p), err)
	}
	restored, err := kept.UndoAll()
	return errors.Join(tell(p, restored), err, kept.Close())
}

// Undo takes changes back that were made by hand. It prints those that are undone also where
// a journal beside could not be read.
func Undo(p *cli.Env, kept *actuate.Kept, ids []string) error {
	restored, err := kept.Undo(ids)
	if errors.Is(err, actuate.ErrUnknownChange) {
		return &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "see `attune changes`; `attune undo --all` takes back what a killed attune run has changed"}
	}
	return errors.Join(tell(p, restored), err)
}

// UndoKilled is UndoAll without what was changed by hand. What that was made on top of stays.
func UndoKilled(p *cli.Env) error {
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return err
	}
	restored, err := kinds.All(kinds.Options{}).Restore(dir)
	return errors.Join(tell(p, restored), err)
}

// tell prints which changes are undone; the error says which are not, and why.
func tell(p *cli.Env, restored []actuate.Restored) error {
	var errs []error
	for _, r := range restored {
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("change %s, %s of process %d: %w", r.Change, r.Knob, r.PID, r.Err))
			continue
		}
		fmt.Fprintf(p.Stdout, "undone: change %s, %s of %s\n", r.Change, printable.Lines(r.Knob), procs.Called(r.PID))
	}
	return errors.Join(errs...)
}

// UndoLeft takes those of some changes back that are in force yet, and reports whether there
// were any: others have ended with their processes, or somebody has undone them.
func UndoLeft(ctx context.Context, p *cli.Env, ids []string) (found bool, err error) {
	kept, err := Open(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	left, err := kept.IDs()
	if err != nil {
		return false, err
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(left, id) })
	if len(ids) == 0 {
		return false, nil
	}
	return true, Undo(p, kept, ids)
}

// journalPatience is how long a command waits for another one to finish.
const journalPatience = 10 * time.Second

// Open opens what this user has changed on this node. The caller closes it.
func Open(ctx context.Context) (*actuate.Kept, error) {
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	return kinds.All(kinds.Options{}).OpenKept(ctx, dir, host)
}
