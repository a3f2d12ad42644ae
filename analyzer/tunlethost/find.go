// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Candidate is a file that calls itself a tunlet, or a directory that does and has a
// program of the same name in it.
type Candidate struct {
	Name        string // without sdk.ProgramPrefix or sdk.DeclarationSuffix
	Path        string // of the program, or of what the interpreter runs
	Folder      string // the directory that has all of its files; empty: it is one file
	Interpreter string // the program that runs it; empty: it is a program
	CopyOf      string // the file that errors name, which it was copied from; empty: Path
	Err         error  // why it is not started; nil if it is
}

// NameOf returns the name of the tunlet that a file is by its name; empty: none.
func NameOf(file string) string {
	base := filepath.Base(file)
	if name, ok := strings.CutPrefix(base, sdk.ProgramPrefix); ok && name != sdk.Interpreter {
		return name
	}
	name, ok := strings.CutSuffix(base, sdk.DeclarationSuffix)
	if !ok || strings.HasPrefix(name, ".") {
		return ""
	}
	return name
}

// Find lists the tunlets of the directories by name; the first directory that
// has a name wins, and in a directory the binary. A directory that cannot be read is
// in the list, with an error. With names, only these are
// returned, in that order, and those that are nowhere come with an error.
func Find(dirs, names []string) []Candidate {
	var found, unread []Candidate
	have, places := map[string]bool{}, slices.Clone(dirs)
	for i, dir := range dirs {
		entries, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // it holds no tunlets
		case err != nil:
			places[i] = fmt.Sprintf("%s (%v)", dir, errors.Unwrap(err))
			unread = append(unread, Candidate{Name: dir, Path: dir, Err: fmt.Errorf("its tunlets are not there for this user: %w", errors.Unwrap(err))})
			continue
		}
		slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(place(a), place(b)) })
		for _, e := range entries {
			name := NameOf(e.Name())
			if name == "" || have[name] {
				continue
			}
			have[name] = true
			found = append(found, candidate(name, filepath.Join(dir, e.Name()), e.IsDir(), dirs))
		}
	}
	slices.SortStableFunc(found, func(a, b Candidate) int { return strings.Compare(a.Name, b.Name) })
	if len(names) == 0 {
		return append(found, unread...)
	}
	return pick(found, names, places)
}

func declared(file string) bool { return strings.HasSuffix(file, sdk.DeclarationSuffix) }

// place has programs come before declarations.
func place(e os.DirEntry) int {
	if declared(e.Name()) {
		return 1
	}
	return 0
}

// candidate is the tunlet in a file, with what runs it if that is no program, or in a
// directory.
func candidate(name, path string, isDir bool, dirs []string) Candidate {
	c := Candidate{Name: name, Path: path}
	switch {
	case isDir && !declared(path):
		c.Folder, c.Path = path, filepath.Join(path, filepath.Base(path))
	case declared(path):
		c.Interpreter = interpreter(dirs)
	}
	c.Err = c.trusted()
	return c
}

// interpreter returns the path of the first one in the directories, else the
// name that it should have.
func interpreter(dirs []string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return sdk.ProgramPrefix + sdk.Interpreter
}

// trusted returns why a tunlet must not be run.
func (c Candidate) trusted() error {
	if c.Folder != "" {
		if _, err := folder(c.Folder).files(); err != nil {
			return err
		}
		if err := ownedBy(filepath.Dir(c.Folder), os.Geteuid()); err != nil {
			return err
		}
	}
	if c.Interpreter == "" {
		return trusted(c.Path)
	}
	if !filepath.IsAbs(c.Interpreter) {
		return fmt.Errorf("there is no %s, which runs it: it comes with Attune's tunlets; install them, or name the directory that has them with --tunlet-dir", c.Interpreter)
	}
	if err := trusted(c.Interpreter); err != nil {
		return err
	}
	return trustedFile(c.Path, func(m os.FileMode) bool { return m.IsRegular() }, "a regular file")
}

// pick returns the named ones of the found tunlets.
func pick(found []Candidate, names, places []string) []Candidate {
	var out []Candidate
	for _, name := range names {
		i := slices.IndexFunc(found, func(c Candidate) bool { return c.Name == name })
		switch {
		case slices.ContainsFunc(out, func(c Candidate) bool { return c.Name == name }):
		case i >= 0:
			out = append(out, found[i])
		default:
			out = append(out, Candidate{Name: name, Err: &missingError{name: name, places: places, found: found}})
		}
	}
	return out
}

// missingError says that a tunlet is nowhere, and what there is instead.
type missingError struct {
	name   string
	places []string // directories, with why one could not be read
	found  []Candidate
}

func (e *missingError) Error() string {
	there := "there is none"
	if len(e.found) > 0 {
		names := make([]string, len(e.found))
		for i, c := range e.found {
			names[i] = c.Name
		}
		there = "there are: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("no %s%s in %s; %s", sdk.ProgramPrefix, e.name, strings.Join(e.places, ", "), there)
}

// trusted returns why a binary must not be run: it or its directory could have
// been written by somebody else.
func trusted(path string) error {
	return trustedFile(path, func(m os.FileMode) bool { return m.IsRegular() && m&0o111 != 0 }, "an executable file")
}

// trustedFile is trusted for a file of some kind.
func trustedFile(path string, kind func(os.FileMode) bool, what string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if !kind(info.Mode()) {
		return fmt.Errorf("%s is not %s", real, what)
	}
	for _, p := range []string{real, filepath.Dir(real), filepath.Dir(path)} {
		if err := ownedBy(p, os.Geteuid()); err != nil {
			return err
		}
	}
	return nil
}

// UntrustedError says why somebody else could have written a tunlet.
type UntrustedError struct{ reason string }

// Error is the reason, with what mends it.
func (e *UntrustedError) Error() string { return e.reason }

// ownedBy returns an error unless the user or root owns a path, and nobody else
// may write to it.
func ownedBy(path string, uid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner cannot be told on this system")
	}
	if st.Uid != 0 && int(st.Uid) != uid {
		return &UntrustedError{fmt.Sprintf("%s belongs to user %d, not to the present user or root", path, st.Uid)}
	}
	if info.Mode()&0o022 != 0 {
		return &UntrustedError{fmt.Sprintf("%s may be written by others (mode %04o); run: chmod go-w %s", path, info.Mode().Perm(), path)}
	}
	return nil
}
