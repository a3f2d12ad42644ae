// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
)

// owner is whom a process of ours runs as, which is never the user whose process
// will be changed where that is another one: see ownerOf.
type owner struct {
	uid, gid uint32
	program  string // that the process which will be changed runs
}

func (o owner) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 && (o.uid != 0 || o.gid != 0) {
		attributes.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return attributes
}

// ownerOf says whom the library of a process is executed as: this process' own
// user or, where this is root and the process a user's, nobody, who gives no user
// a process to trace that is in none of their jobs. An error if the process runs
// as another user than it was started by.
func ownerOf(pid int) (owner, error) {
	status, err := procid.ReadStatus(pid)
	if err != nil {
		return owner{}, fmt.Errorf("owner of process %d: %w", pid, err)
	}
	users, groups := status.Users, status.Groups
	if users.Real != users.Effective || groups.Real != groups.Effective {
		return owner{}, fmt.Errorf("process %d runs with another user's rights: its libraries are not probed", pid)
	}
	if os.Geteuid() == 0 && users.Real != 0 {
		return owner{uid: confine.Nobody, gid: confine.Nobody}, nil
	}
	return owner{uid: users.Real, gid: groups.Real}, nil
}

// mayExecute says whether a file may be executed outside the job that uses it:
// what root executes as nobody, only root can have put there.
func (o owner) mayExecute(file string) error {
	if o.uid != confine.Nobody || os.Geteuid() != 0 {
		return nil
	}
	for at := file; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOtherFile, at, err)
		}
		if st.Uid != 0 || st.Mode&0o022 != 0 {
			return fmt.Errorf("%w: users can change %s; its user's own attune tune can find the variable", ErrNotRoots, at)
		}
		if at == "/" {
			return nil
		}
	}
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
	return o.mayExecute(program)
}
