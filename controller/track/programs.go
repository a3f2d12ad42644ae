// SPDX-License-Identifier: Apache-2.0

package track

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxPrograms bounds the files that are remembered; beyond it they are forgotten.
const maxPrograms = 1024

// programFile is what the kernel names a program by.
type programFile struct{ device, inode uint64 }

// programs remembers where the files of programs are, for processes that end
// before anybody can read that: a script calls the same few again and again.
type programs map[programFile]string

// describe tells in message what the kernel has said of an exec; nil: nothing.
func (p programs) describe(message *attunev1.Process, program *procevent.Program) {
	if program == nil {
		return
	}
	words := ParseCommandLine(program.Arguments)
	if len(words) > 0 {
		message.CommandLine = words
	}
	message.Identity = &attunev1.ProcessIdentity{ExeDevice: program.Device, ExeInode: program.Inode}
	message.Executable = p.path(program, words)
}

// isAnother says whether a process as /proc shows it executes something else than
// the kernel told; false if that told nothing. File systems of layers show other
// inode numbers than they have, and programs may change their arguments: both
// have to differ.
func isAnother(shown *attunev1.Process, program *procevent.Program) bool {
	if program == nil || shown.GetIdentity().GetExeInode() == program.Inode {
		return false
	}
	words := ParseCommandLine(program.Arguments)
	return len(words) > 0 && (len(shown.CommandLine) == 0 || words[0] != shown.CommandLine[0])
}

// path returns the path of a program; "" if it is not where it was started from.
func (p programs) path(program *procevent.Program, words []string) string {
	file := programFile{program.Device, program.Inode}
	if path, known := p[file]; known {
		return path
	}
	candidates := []string{program.StartedAs}
	if len(words) > 0 {
		candidates = append(candidates, words[0]) // of a script, its interpreter
	}
	for _, candidate := range candidates {
		var st unix.Stat_t // the words are the program's own: nothing is mounted for them
		if !filepath.IsAbs(candidate) || unix.Fstatat(unix.AT_FDCWD, candidate, &st, unix.AT_NO_AUTOMOUNT) != nil ||
			uint64(st.Dev) != file.device || st.Ino != file.inode {
			continue
		}
		path, err := filepath.EvalSymlinks(candidate)
		if err != nil {
			continue
		}
		if len(p) >= maxPrograms {
			clear(p)
		}
		p[file] = strings.ToValidUTF8(path, "?")
		return p[file]
	}
	return ""
}
