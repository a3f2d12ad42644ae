// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// readNames reads names of a program that are in the memory of its process, which may never answer.
var readNames = readers.NewOperation("names", func(_ context.Context, pid int) ([]string, error) { return objfile.ProgramNames(pid), nil })

// Operations lists what may never end, for the process that does it (package readers).
func Operations() []readers.Served { return []readers.Served{readNames} }

// namer looks for processes by the names of their programs.
type namer struct {
	pool *readers.Pool // nil: all processes are this user's
}

// newNamer returns one. By root, helpers read what is other users'. The caller closes it.
func newNamer() namer {
	if os.Geteuid() != 0 {
		return namer{}
	}
	return namer{readers.New(readers.Options{})}
}

func (n namer) close() {
	if n.pool != nil {
		_ = n.pool.Close() // never fails
	}
}

func (n namer) isNamed(pid, owner int, pattern string) bool {
	names, err := readNames.Ask(context.Background(), n.pool, uint32(owner), pid)
	if err != nil { // its memory does not answer
		names = plainNames(pid)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		ok, _ := path.Match(pattern, filepath.Base(name)) // the pattern was looked at
		return ok
	})
}

// plainNames are those that the kernel has.
func plainNames(pid int) (names []string) {
	if stat, err := procid.ReadStat(pid); err == nil {
		names = append(names, stat.Comm)
	}
	if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		names = append(names, strings.TrimSuffix(path, " (deleted)"))
	}
	return names
}
