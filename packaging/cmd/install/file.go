// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is one file, or one symbolic link, to be installed.
type file struct {
	source, destination string
	prefix              string
	config              bool // the administrator changes it
}

// install puts the file in place in one step, so that programs that run keep theirs. A
// configuration that somebody has changed stays.
func (f file) install(destdir string) error {
	path := filepath.Join(destdir, f.destination)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(f.source)
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(f.source)
		if err != nil {
			return err
		}
		return errors.Join(os.Symlink(to, next), os.Rename(next, path))
	}
	text, err := f.text()
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(path); f.config && err == nil && !bytes.Equal(there, text) {
		fmt.Printf("%s is not as the new %s and stays: see whether that has what is needed now\n", path, f.source)
		return nil
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err = os.WriteFile(next, text, mode); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}

// text is what is in the file. Units and profiles name programs by their path.
func (f file) text() ([]byte, error) {
	text, err := os.ReadFile(f.source)
	switch filepath.Base(filepath.Dir(f.destination)) {
	case "system", "apparmor.d":
		text = bytes.ReplaceAll(text, []byte("/usr/bin/attune"), []byte(filepath.Join(f.prefix, "bin/attune")))
		text = bytes.ReplaceAll(text, []byte("/usr/{,local/}lib/attune"), []byte(filepath.Join(f.prefix, "lib/attune")))
	}
	return text, err
}

// remove removes the file, and the directories above that are empty then. A
// configuration that somebody has changed stays, unless it is purged.
func (f file) remove(destdir string, purge bool) error {
	path := filepath.Join(destdir, f.destination)
	if f.config && !purge {
		text, err := f.text()
		there, gone := os.ReadFile(path)
		if err == nil && gone == nil && !bytes.Equal(there, text) {
			fmt.Printf("%s was changed and stays\n", path)
			return nil
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(f.destination); !f.standing(dir); dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(destdir, dir)) != nil { // it is not empty
			break
		}
	}
	return nil
}

// standing says whether a directory is there also where nothing is in it.
func (f file) standing(dir string) bool {
	below, _ := strings.CutPrefix(dir, f.prefix)
	return below == "" || slices.Contains([]string{"/", "/etc", "/usr", "/usr/lib", "/bin", "/lib", "/share", "/share/man"}, below)
}
