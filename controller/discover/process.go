// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// key tells processes with one number apart.
type key struct {
	pid   int
	start uint64 // clock ticks since boot
}

// executable returns the path of a process' program, also of one that was
// deleted or replaced since.
func executable(pid int) string {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// absolute completes a path that a process was started by, which it gave
// relative to its working directory: that may have changed since.
func absolute(pid int, name string) string {
	switch {
	case name == "":
		return ""
	case path.IsAbs(name):
		return path.Clean(name)
	}
	directory, err := os.Readlink(procPath(pid, "cwd"))
	if err != nil {
		return name
	}
	return path.Join(directory, name)
}

// isScript says whether a file begins with #!. Nothing but a regular file is
// opened.
func isScript(file string) bool { return objfile.Inspect(file).Script != nil }

// maxOptions is how many options of an interpreter may stand before its script.
const maxOptions = 4

// script returns the script that an interpreter runs, of a process that is not
// known by it any more: after `#! /usr/bin/env python3` the program is python3,
// and was started as such. That the script names that program is checked, if
// the script is wanted: files of others are not opened.
func script(pid int, wanted func(name string) bool) string {
	data, err := procid.ReadFile(pid, "cmdline", maxPath)
	if err != nil {
		return ""
	}
	words := track.ParseCommandLine(data)
	for i := 1; i < len(words) && i <= maxOptions; i++ {
		if strings.HasPrefix(words[i], "-") || words[i] == "" {
			continue
		}
		file := absolute(pid, words[i])
		if wanted(file) && interprets(pid, filepath.Join(procPath(pid, "root"), file)) {
			return file
		}
		return ""
	}
	return ""
}

// interprets says whether the process is the interpreter that the script's
// first line asks for.
func interprets(pid int, file string) bool {
	inspected := objfile.Inspect(file)
	if inspected.Script == nil || inspected.Script.Program == nil {
		return false
	}
	var asked, runs unix.Stat_t
	return unix.Stat(inspected.Script.Program.Path, &asked) == nil && unix.Stat(procPath(pid, "exe"), &runs) == nil &&
		asked.Dev == runs.Dev && asked.Ino == runs.Ino
}

// maxPath bounds what is read of a path, and of the first arguments.
const maxPath = 4096

// startedAs returns the path that execve(2) was given for the present image, ""
// where it cannot be read. The kernel keeps it in the process' own memory.
func startedAs(pid int) string {
	address, err := procid.Auxiliary(pid, procid.AuxExecuted)
	if err != nil {
		return ""
	}
	memory, err := os.Open(procPath(pid, "mem"))
	if err != nil {
		return ""
	}
	defer memory.Close()
	text := make([]byte, 256)
	n, _ := memory.ReadAt(text, int64(address)) // it lies at the end of the stack: less is no error
	text, _, whole := bytes.Cut(text[:n], []byte{0})
	if !whole {
		return ""
	}
	return string(text)
}

// privileged says whether the process has more rights than its user: whoever
// could change it would have them. Of one that has ended it does not matter.
func privileged(pid int, uid uint32) bool {
	owner, err := procid.Owner(pid)
	if err != nil {
		return !errors.Is(err, procid.ErrGone)
	}
	return owner != uid
}

// program names this process' own executable.
type program struct {
	device, inode uint64
	directory     string
}

func ownProgram() (program, error) {
	path, err := os.Executable()
	if err != nil {
		return program{}, fmt.Errorf("own executable: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		return program{}, fmt.Errorf("own executable: %w", err)
	}
	return program{uint64(st.Dev), st.Ino, filepath.Dir(path)}, nil
}

// is says whether a process runs this program or one of Attune's beside it.
func (p program) is(process *attunev1.Process) bool {
	identity := process.GetIdentity()
	if identity.GetExeDevice() == p.device && identity.GetExeInode() == p.inode {
		return true
	}
	directory, base := filepath.Split(process.GetExecutable())
	return filepath.Clean(directory) == p.directory && strings.HasPrefix(base, "attune")
}
