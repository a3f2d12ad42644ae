// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// Operations lists what is read of the memory and files of processes and users, which
// may never answer, for the process that does it (package readers).
func Operations() []readers.Served {
	return append(track.Operations(), readStarted(), readImage(), readInterprets(), readTarget())
}

// started is how a process was started, as its memory has it.
type started struct {
	As    []byte // the path that execve(2) was given; empty where it cannot be read
	Words []string
}

func readStarted() readers.Operation[int, started] {
	return readers.NewOperation("started", func(_ context.Context, pid int) (started, error) {
		words, err := procid.ReadFile(pid, "cmdline", maxPath)
		if err != nil {
			return started{}, err
		}
		return started{[]byte(proc.ExecutedAs(pid)), track.ParseCommandLine(words)}, nil
	})
}

// maxPath bounds what is read of a path, and of the first arguments.
const maxPath = 4096

// imageQuestion asks of what kind a program is that goes under names.
type imageQuestion struct {
	PID   int
	Names [][]byte // need not be UTF-8
}

// readImage returns which of the names is a script's, as an index; -1 if none is.
// Nothing but regular files is opened, the executable among them: of a process whose own
// program does not answer there is no controlling.
func readImage() readers.Operation[imageQuestion, int] {
	return readers.NewOperation("image", func(_ context.Context, q imageQuestion) (int, error) {
		objfile.Inspect(procid.Path(q.PID, "exe"))
		program := procid.Executable(q.PID)
		for i, text := range q.Names {
			name := string(text)
			if name != program && path.IsAbs(name) && objfile.Inspect(inside(q.PID, name)).Script != nil {
				return i, nil
			}
		}
		return -1, nil
	})
}

// inside is a path as a process has it.
func inside(pid int, name string) string { return filepath.Join(procid.Path(pid, "root"), name) }

// interpretsQuestion asks whether the process is the interpreter that the first line of
// the script asks for.
type interpretsQuestion struct {
	PID    int
	Script string // its path as the process has it
}

func readInterprets() readers.Operation[interpretsQuestion, bool] {
	return readers.NewOperation("interprets", func(_ context.Context, q interpretsQuestion) (bool, error) {
		script := objfile.Inspect(inside(q.PID, q.Script)).Script
		var runs unix.Stat_t
		if script == nil || unix.Stat(procid.Path(q.PID, "exe"), &runs) != nil {
			return false, nil
		}
		asked := []string{script.Interpreter}
		if program := script.EnvProgram(); program != "" {
			asked = searched(q.PID, program)
		}
		return slices.ContainsFunc(asked, func(name string) bool { return leadsTo(q.PID, name, runs) }), nil
	})
}

// maxSearched bounds the directories in which a program is looked for.
const maxSearched = 64

// searched lists where env(1) looks for a program, by the PATH that the process has of it.
func searched(pid int, program string) (names []string) {
	if strings.Contains(program, "/") {
		return []string{absolute(pid, program)}
	}
	directories := "/bin:/usr/bin" // as execvp(3), without a PATH
	environ, _ := procid.Environ(pid)
	for _, variable := range environ {
		if value, is := bytes.CutPrefix(variable, []byte("PATH=")); is {
			directories = string(value)
			break
		}
	}
	all := filepath.SplitList(directories)
	for _, directory := range all[:min(len(all), maxSearched)] {
		names = append(names, absolute(pid, path.Join(directory, program)))
	}
	return names
}

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// leadsTo says whether a path as a process has it, with all symbolic links on the way, leads
// to a file. The links are followed one by one, below the root directory of the process: a
// helper may not call openat2, which could do that.
func leadsTo(pid int, name string, file unix.Stat_t) bool {
	where, rest, links := "/", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		next := path.Join(where, rest[0])
		way := rest[0]
		if rest = rest[1:]; way == "" || way == "." || way == ".." {
			where = next
			continue
		}
		target, err := os.Readlink(inside(pid, next))
		if err != nil { // no link, or nothing
			where = next
			continue
		}
		if links++; links > maxLinks {
			return false
		}
		if path.IsAbs(target) {
			where = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	st, err := procid.FileOf(inside(pid, where))
	return err == nil && st.Dev == file.Dev && st.Ino == file.Ino
}

// readTarget finds what a path names in the end; "" where nothing is.
func readTarget() readers.Operation[string, string] {
	return readers.NewOperation("target", func(_ context.Context, path string) (string, error) {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", nil //nolint:nilerr // what is not there yet has no other name
		}
		return target, nil
	})
}
