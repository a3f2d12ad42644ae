// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// key tells processes with one number apart.
type key struct {
	pid   int
	start uint64 // clock ticks since boot
}

// absolute completes a path that a process was started by, which it gave
// relative to its working directory: that may have changed since.
func absolute(pid int, name string) string {
	switch {
	case name == "":
		return ""
	case path.IsAbs(name):
		return path.Clean(name)
	}
	directory, err := os.Readlink(procid.Path(pid, "cwd"))
	if err != nil {
		return name
	}
	return path.Join(directory, name)
}

// maxOptions is how many options of an interpreter may stand before its script.
const maxOptions = 4

// script returns the script that an interpreter runs, of a process that is not
// known by it any more: after `#! /usr/bin/env python3` the program is python3,
// and was started as such. That the script names that program is checked, if
// the script is wanted: files of others are not opened.
func script(pid int, words []string, wanted func(name string) bool, interprets func(file string) bool) string {
	for i := 1; i < len(words) && i <= maxOptions; i++ {
		if strings.HasPrefix(words[i], "-") || words[i] == "" {
			continue
		}
		file := absolute(pid, words[i])
		if wanted(file) && interprets(file) {
			return file
		}
		return ""
	}
	return ""
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
