// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// library is how DMLib comes into the process.
type library struct {
	attach     uint64            // attune_dm_attach where it is there already, else 0
	behind     uint64            // attune_dm_behind, likewise
	fromMemory bool              // the process has no path for it
	hooks      map[string]uint64 // what it exports for programs to call, by name: offsets
}

const (
	attachFunction = "attune_dm_attach"
	behindTable    = "attune_dm_behind"
)

// pageBytes is the least size of a page on the processors that there are.
const pageBytes = 4096

// findLibrary says how DMLib comes into a process: it is there already, or the
// process can open our file, or it gets the bytes.
func findLibrary(process *proc.Handle, images []objfile.Image, s procid.Status, path string) (l library, err error) {
	file, err := objfile.Open(path)
	if err != nil {
		return l, fmt.Errorf("dmlib: %w", err)
	}
	defer file.Close()
	for _, image := range images {
		if image.Matches("libattune-dm*") {
			return present(image)
		}
	}
	if l.hooks, err = hookOffsets(file); err != nil {
		return l, err
	}
	base, there, err := libraryBase(process.PID())
	switch {
	case err != nil:
		return l, err
	case there: // the file that it has mapped cannot be opened
		return presentUnread(process, base, file, l)
	case int(s.Users.Files) == os.Geteuid() && sees(process.PID(), path):
		return l, nil
	}
	l.fromMemory = true
	if _, err := os.Lstat(fmt.Sprintf("/proc/%d/root/proc/thread-self", process.PID())); err != nil {
		return l, fmt.Errorf("%w: it does not see %s and has no /proc to open it by", ErrUnsuited, path)
	}
	return l, nil
}

// present is the library that the process has, of whatever version.
func present(image objfile.Image) (l library, err error) {
	file, err := image.Open()
	if err != nil {
		return l, err
	}
	defer file.Close()
	s, err := file.SymbolOf(attachFunction, objfile.Function)
	if err != nil {
		return l, fmt.Errorf("%w: it has a DMLib of a version that cannot be attached to: %w", ErrUnsuited, err)
	}
	l.attach = image.Address(s.Value)
	if s, err = file.SymbolOf(behindTable, objfile.Variable); err != nil {
		return l, fmt.Errorf("%w: it has a DMLib of a version that cannot be attached to: %w", ErrUnsuited, err)
	}
	l.behind = image.Address(s.Value)
	l.hooks, err = hookOffsets(file)
	return l, err
}

// presentUnread is the library that the process has, if it is the one that we
// have: the first page holds its build id.
func presentUnread(process *proc.Handle, base uint64, file *objfile.File, l library) (library, error) {
	ours, theirs := make([]byte, pageBytes), make([]byte, pageBytes)
	_, err := file.ReadAt(ours, 0)
	if err := errors.Join(err, process.Read(base, theirs)); err != nil {
		return l, err
	}
	if !bytes.Equal(ours, theirs) {
		return l, fmt.Errorf("%w: it has a DMLib of another version, whose file is gone", ErrUnsuited)
	}
	s, err := file.SymbolOf(attachFunction, objfile.Function)
	l.attach = base + s.Value
	return l, err
}

// hookOffsets returns what the library exports for programs to call, by name.
func hookOffsets(file *objfile.File) (map[string]uint64, error) {
	hooks := make(map[string]uint64)
	err := file.EachFunction(func(s objfile.Symbol) error {
		if s.Dynamic && s.Bind == elf.STB_GLOBAL && !strings.HasPrefix(s.Name, "attune_") {
			hooks[s.Name] = s.Value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dmlib: %w", err)
	}
	for _, h := range shm.Hooks() {
		if _, ok := hooks[h.Name]; !ok && !h.Led() {
			return nil, errors.New("dmlib lacks the hook " + h.Name)
		}
	}
	return hooks, nil
}

// libraryBase is where DMLib is loaded, if it is.
func libraryBase(pid int) (base uint64, there bool, err error) {
	mappings, err := objfile.Mappings(pid)
	for _, m := range mappings {
		if m.Offset == 0 && (objfile.Image{Path: m.Path}).Matches("libattune-dm*") {
			return m.Start, true, nil
		}
	}
	return 0, false, err
}

// sees says whether a path means the same file to the process as to us.
func sees(pid int, path string) bool {
	var own unix.Stat_t
	if unix.Stat(path, &own) != nil {
		return false
	}
	theirs, err := procid.StatInRoot(pid, path)
	return err == nil && own.Dev == theirs.Dev && own.Ino == theirs.Ino
}
