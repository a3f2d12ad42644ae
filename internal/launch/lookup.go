// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objfile"
)

// defaultPath is where execvp of glibc looks without PATH.
const defaultPath = "/bin:/usr/bin"

// shell runs a file that the kernel cannot execute and that has no #! line, as
// execvp has it.
const shell = "/bin/sh"

// Candidates lists the files that execvp would try for name, in its order: the
// name itself if it has a slash, else one per element of PATH in env (an empty
// element is the working directory).
func Candidates(name string, env []string) []string {
	if name == "" || strings.Contains(name, "/") {
		return []string{name}
	}
	path := defaultPath
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
			break
		}
	}
	var list []string
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			list = append(list, name)
		} else {
			list = append(list, dir+"/"+name)
		}
	}
	return list
}

// search tries the candidates as execvp does: the last error counts, but a
// file that was refused counts more than others that were not there.
func search(args, env []string, exec func(path string, args []string) error) error {
	var last, refused error
	for _, path := range Candidates(args[0], env) {
		if last = exists(path); last == nil {
			last = exec(path, args)
		}
		if errors.Is(last, syscall.ENOEXEC) && !binary(path) {
			last = exec(shell, append([]string{shell, path}, args[1:]...))
		}
		if last == nil || !tryNext(last) {
			return last
		}
		if errors.Is(last, syscall.EACCES) {
			refused = last
		}
	}
	if refused != nil {
		return refused
	}
	return last
}

// Check returns the error that Start would, as far as names and permissions tell.
func Check(args, env []string) error {
	if err := search(args, env, func(path string, _ []string) error { return unix.Access(path, unix.X_OK) }); err != nil {
		return startError(args[0], err)
	}
	return nil
}

// exists returns the error that execve would return for a file that is not
// there: most elements of PATH have none, and need no process to find out.
func exists(path string) error {
	var st syscall.Stat_t
	return syscall.Stat(path, &st)
}

// tryNext tells whether execvp goes on to the next element of PATH.
func tryNext(err error) bool {
	switch errno, _ := errors.AsType[syscall.Errno](err); errno {
	case syscall.EACCES, syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE, syscall.ENODEV, syscall.ETIMEDOUT:
		return true
	}
	return false
}

// startError gives an error of execve its exit code, and the reason in words
// where the file can tell.
func startError(name string, err error) error {
	e := &exitcode.Error{Code: exitcode.CannotExecute}
	if errors.Is(err, syscall.ENOENT) {
		e.Code = exitcode.NotFound
	}
	if !strings.Contains(name, "/") {
		e.Err, e.Remedy = fmt.Errorf("%s: %w", name, objfile.ErrNotFound), "check the spelling and PATH"
		if e.Code != exitcode.NotFound {
			e.Err, e.Remedy = fmt.Errorf("%s: %w: %w", name, objfile.ErrCannotExecute, err), "name the file with its path"
		}
		return e
	}
	e.Err = fmt.Errorf("%s: %w", name, err)
	if reason := objfile.Inspect(name).Runnable(); reason != nil {
		e.Err = reason
	}
	sentinel := objfile.ErrCannotExecute
	if e.Code == exitcode.NotFound {
		sentinel = objfile.ErrNotFound
	}
	if !errors.Is(e.Err, sentinel) {
		e.Err = fmt.Errorf("%w: %w", sentinel, e.Err)
	}
	return e
}

// binary says whether a file that the kernel does not execute is a program all
// the same, cut off or for another machine: no shell could read it.
func binary(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // read only
	magic := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(file, magic)
	return err == nil && string(magic) == elf.ELFMAG
}
