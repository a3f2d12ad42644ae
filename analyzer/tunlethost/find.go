// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Prefix is what the name of a tunlet's binary begins with.
const Prefix = "attune-tunlet-"

// Candidate is a binary that calls itself a tunlet.
type Candidate struct {
	Name string // without Prefix
	Path string
	Err  error // why it is not started; nil if it is
}

// Find lists the tunlets of the directories by name; the first directory that
// has a name wins. With names, only these are returned, in that order, and those
// that are nowhere come with an error.
func Find(dirs, names []string) []Candidate {
	var found []Candidate
	have := map[string]bool{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // a directory that is not there holds no tunlets
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), Prefix)
			if !ok || name == "" || have[name] {
				continue
			}
			have[name] = true
			path := filepath.Join(dir, e.Name())
			found = append(found, Candidate{Name: name, Path: path, Err: trusted(path)})
		}
	}
	slices.SortStableFunc(found, func(a, b Candidate) int { return strings.Compare(a.Name, b.Name) })
	if len(names) == 0 {
		return found
	}
	return pick(found, names, dirs)
}

// pick returns the named ones of the found tunlets.
func pick(found []Candidate, names, dirs []string) []Candidate {
	var out []Candidate
	for _, name := range names {
		i := slices.IndexFunc(found, func(c Candidate) bool { return c.Name == name })
		switch {
		case slices.ContainsFunc(out, func(c Candidate) bool { return c.Name == name }):
		case i >= 0:
			out = append(out, found[i])
		default:
			out = append(out, Candidate{Name: name, Err: &missingError{name: name, dirs: dirs, found: found}})
		}
	}
	return out
}

// missingError says that a tunlet is nowhere, and what there is instead.
type missingError struct {
	name  string
	dirs  []string
	found []Candidate
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
	return fmt.Sprintf("no %s%s in %s; %s", Prefix, e.name, strings.Join(e.dirs, ", "), there)
}

// trusted returns why a binary must not be run: it or its directory could have
// been written by somebody else.
func trusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", real)
	}
	for _, p := range []string{real, filepath.Dir(real), filepath.Dir(path)} {
		if err := ownedBy(p, os.Geteuid()); err != nil {
			return err
		}
	}
	return nil
}

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
		return fmt.Errorf("%s belongs to user %d, not to the present user or root", path, st.Uid)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s may be written by others (mode %04o); run: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}
