// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"errors"
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

// candidate is a process that may be meant, with what is known of it.
type candidate struct {
	process *attunev1.Process
	held    *procid.Process // nil: it has ended
	// names that it goes under: of its executable, as it was started.
	names []string
	// file is what a checksum is meant of: the script that it was started as, or
	// the executable; a path under /proc/PID while that is there.
	file string
	// batch says that the batch system started it.
	batch bool
	// attuneJob is its ATTUNE_JOB.
	attuneJob string
	// off says that it is to be left alone.
	off bool
	// privileged says that it may do what its user may not.
	privileged bool
}

// key tells processes with one number apart.
type key struct {
	pid   int
	start uint64 // clock ticks since boot
}

func (c *candidate) key() key {
	identity := c.process.GetIdentity()
	return key{int(identity.GetPid()), identity.GetStartTicks()}
}

func (c *candidate) close() {
	if c.held != nil {
		_ = c.held.Close() // it only fails if it is closed already
	}
}

// names returns what a process goes under: the path of its executable, what it
// was started by, and the script that it runs if it is wanted, each if known.
func names(e event, wanted func(name string) bool) []string {
	var names []string
	add := func(name string) {
		if name != "" {
			names = append(names, name)
		}
	}
	add(executable(e.PID))
	started := startedAs(e.PID)
	if e.program != nil {
		add(absolute(e.PID, e.program.StartedAs))
		if started == e.program.StartedAs {
			started = "" // no exec since
		}
	}
	add(absolute(e.PID, started))
	add(script(e.PID, wanted))
	return names
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

// describe finds out all that is needed of a process that goes under these
// names. Of one that has ended that is what its exec told.
func (s *state) describe(e event, names []string) (*candidate, error) {
	d, err := track.Describe(e.PID, e.Event)
	if errors.Is(err, procid.ErrGone) && e.program != nil {
		d, err = s.remains(e), nil
	}
	if err != nil {
		return nil, err
	}
	c := &candidate{
		process: d.Process, held: d.Held, attuneJob: d.AttuneJob, off: d.Off, names: append(names, d.Process.GetExecutable()),
	}
	c.file = c.checkedFile()
	c.privileged = privileged(e.PID, c.process.GetUid())
	c.batch = s.batch.started(e.PID, c.process.GetUid())
	return c, nil
}

// remains is what the kernel told of a process that has ended. Where it
// belongs its parent may still know.
func (s *state) remains(e event) track.Description {
	d := track.Description{Process: &attunev1.Process{
		Identity: &attunev1.ProcessIdentity{
			BootId: s.boot, Pid: int32(e.PID), StartTicks: e.StartTicks,
			ExeDevice: e.program.Device, ExeInode: e.program.Inode,
		},
		ParentPid: int32(e.Parent), Uid: e.UID, Executable: e.program.StartedAs,
		CommandLine: track.ParseCommandLine(e.program.Arguments),
	}}
	if parent, err := track.Describe(e.Parent, track.Event{}); err == nil {
		d.Process.Job, d.AttuneJob = parent.Process.GetJob(), parent.AttuneJob
		_ = parent.Held.Close()
	}
	return d
}

// checkedFile returns the file whose checksum counts.
func (c *candidate) checkedFile() string {
	pid := int(c.process.GetIdentity().GetPid())
	for _, name := range c.names {
		if name == c.process.GetExecutable() || !path.IsAbs(name) {
			continue
		}
		inside := filepath.Join(procPath(pid, "root"), name)
		if isScript(inside) {
			return inside
		}
	}
	return procPath(pid, "exe")
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
