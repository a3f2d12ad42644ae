// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// ErrSilent is of a process that cannot be looked into.
var ErrSilent = errors.New("a program of its user does not answer")

// Reader reads what is in the memory and the programs of processes, which may never answer: the
// file system of a program may be of a server that is dead, or its user's own. Helpers read what is
// not of the user of this command, who has others wait only then. All that is root's is read by
// helpers too, where they can: root's commands look at every process.
type Reader struct{ pool *readers.Pool }

// NewReader returns one, which starts helpers when they are needed. The caller closes it.
func NewReader() Reader { return Reader{readers.New(readers.Options{})} }

// Close ends the helpers.
func (r Reader) Close() { _ = r.pool.Close() } // never fails

// The operations are all about one process. What is read of a program is of the one that the process
// executes.
var (
	readNames     = readers.NewOperation("names", func(_ context.Context, pid int) ([]string, error) { return objfile.ProgramNames(pid), nil })
	readArguments = readers.NewOperation("arguments", func(_ context.Context, pid int) ([]string, error) {
		line, err := procid.ReadFile(pid, "cmdline", maxArguments)
		return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), err
	})
	readPreload = readers.NewOperation("preload", func(_ context.Context, pid int) (string, error) {
		return objfile.InspectExecuted(pid).PreloadRefusal(), nil
	})
)

// maxArguments bounds the arguments that are read.
const maxArguments = 1 << 20

// Operations lists what may never end, for the process that does it (package readers).
func Operations() []readers.Served { return []readers.Served{readNames, readArguments, readPreload} }

// Arguments returns the command line of a process, one word at least. [ErrSilent] if it does not answer.
func (r Reader) Arguments(pid int) ([]string, error) { return ask(r, readArguments, pid) }

// PreloadRefusal says why DMLib cannot be preloaded into the program of a process; empty: it can.
// [ErrSilent] if it does not answer.
func (r Reader) PreloadRefusal(pid int) (string, error) { return ask(r, readPreload, pid) }

// ask has an operation done, by a helper unless the process is of this user, who is not root or whose
// helpers have no rights to look into it.
func ask[A any](r Reader, what readers.Operation[int, A], pid int) (answer A, err error) {
	status, err := procid.ReadStatus(pid)
	if err != nil {
		return answer, err
	}
	// Not the owner of the directory in /proc: a process can have it be root's.
	uid, by := status.Users.Real, r.pool
	if int(uid) == os.Geteuid() && (uid != 0 || !readers.HaveRights()) {
		by = nil
	}
	if answer, err = what.Ask(context.Background(), by, uid, pid); errors.Is(err, readers.ErrRefused) {
		err = ErrSilent
	}
	return answer, err
}
