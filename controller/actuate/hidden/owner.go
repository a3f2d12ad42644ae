// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/attune-hpc/attune/internal/procid"
)

// owner is whom a process of ours runs as: who the process that will be
// changed belongs to, since it executes that user's files.
type owner struct {
	uid, gid uint32
	program  string // that the owner's process runs
}

func (o owner) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 && (o.uid != 0 || o.gid != 0) {
		attributes.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return attributes
}

// ownerOf is the user that a process runs as; an error if it runs as another
// than it was started by.
func ownerOf(pid int) (owner, error) {
	status, err := procid.ReadStatus(pid)
	if err != nil {
		return owner{}, fmt.Errorf("owner of process %d: %w", pid, err)
	}
	if status.Users.Real != status.Users.Effective || status.Groups.Real != status.Groups.Effective {
		return owner{}, fmt.Errorf("process %d runs with another user's rights: its libraries are not probed", pid)
	}
	return owner{uid: status.Users.Real, gid: status.Groups.Real}, nil
}

// interpreter finds the program that runs a variable's script. A program that
// merely embeds the interpreter would take the script for something else.
func (o *owner) interpreter(pid int, v Variable) error {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Errorf("program of process %d: %w", pid, procid.GoneError(err))
	}
	if fits, err := path.Match(v.Program, filepath.Base(program)); err != nil || !fits {
		return fmt.Errorf("%s is embedded in %s: only the interpreter's own program is probed", v.Name, program)
	}
	o.program = program
	return nil
}
