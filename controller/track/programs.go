// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxPrograms bounds the files that are remembered; beyond it they are forgotten.
const maxPrograms = 1024

// programFile is what the kernel names a program by. Without the path that it was started
// by, a file that has a deleted one's inode would be taken for that.
type programFile struct {
	device, inode uint64
	startedAs     string
}

// programs remembers where the files of programs are, for processes that end
// before anybody can read that: a script calls the same few again and again.
type programs struct {
	readers *readers.Pool
	known   map[programFile]string
}

// describe tells in message, which has the user, what the kernel has said of an exec;
// nil: nothing.
func (p programs) describe(message *attunev1.Process, program *procevent.Program) {
	if program == nil {
		return
	}
	words := ParseCommandLine(program.Arguments)
	if len(words) > 0 {
		message.CommandLine = words
	}
	message.Identity = &attunev1.ProcessIdentity{ExeDevice: program.Device, ExeInode: program.Inode}
	message.Executable = p.path(program, words, message.Uid)
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
func (p programs) path(program *procevent.Program, words []string, uid uint32) string {
	file := programFile{program.Device, program.Inode, program.StartedAs}
	if path, known := p.known[file]; known {
		return path
	}
	names := [][]byte{[]byte(program.StartedAs)}
	if len(words) > 0 {
		names = append(names, []byte(words[0])) // of a script, its interpreter
	}
	path, err := readPath().Ask(context.Background(), p.readers, uid, pathQuestion{names, file.device, file.inode})
	if err != nil || path == "" {
		return ""
	}
	if len(p.known) >= maxPrograms {
		clear(p.known)
	}
	p.known[file] = path
	return path
}
