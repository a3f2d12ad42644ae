// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Owner returns the user who may do with a process what they like, which is
// root for one that has more rights than its user, or secrets from them: a
// setuid or setgid program, one with capabilities, one that cannot be dumped. It
// is the kernel's own rule for debuggers ("Ptrace access mode checking" in
// ptrace(2)), for who does something in somebody else's name and is not stopped
// by the kernel. [ErrGone] if the process has ended.
//
// An exec may change the answer at any time; whoever acts later asks again.
func Owner(pid int) (uint32, error) {
	s, file, err := statusAndFileOwner(pid)
	if err != nil {
		return 0, fmt.Errorf("owner of %d: %w", pid, err)
	}
	return s.owner(file, s.capable(pid)), nil
}

// RunsAs returns the user whose rights a process has, and no more than those, else
// root. Unlike [Owner] it does not ask whether that user may look into the process,
// which the kernel refuses for a fork of a service that has taken on the user's id, until
// it executes a program. [ErrGone] if the process has ended.
func RunsAs(pid int) (uint32, error) {
	s, _, err := statusAndFileOwner(pid)
	if err != nil {
		return 0, fmt.Errorf("user of %d: %w", pid, err)
	}
	return s.owner(s.Users.Effective, s.capable(pid)), nil
}

// statusAndFileOwner reads what the rights of a process are, and who owns its files in
// /proc.
func statusAndFileOwner(pid int) (s Status, owner uint32, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, 0, GoneError(err)
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return s, 0, err
	}
	content, err := bounded.ReadAll("status", file, maxStatusBytes)
	if err != nil {
		return s, 0, GoneError(err)
	}
	if s, err = ParseStatus(string(content)); err == nil {
		err = s.whole()
	}
	return s, st.Uid, err
}

// owner is whose process it is. file is the owner of its files in /proc: root's
// are those of a process that cannot be dumped.
func (s Status) owner(file uint32, capable bool) uint32 {
	if !s.Users.Same() || !s.Groups.Same() || capable || file != s.Users.Effective {
		return 0
	}
	return s.Users.Effective
}

// capable says whether a process with this status has capabilities here: what is in
// another user namespace has them there only.
func (s Status) capable(pid int) bool { return s.Capabilities != 0 && !foreignNamespace(pid) }

// initialUsers is the inode of the first user namespace: PROC_USER_INIT_INO of the kernel.
const initialUsers = 0xEFFFFFFD

// InInitialUsers says whether a process is known to be in the user namespace in which the kernel
// asks for the capabilities that are for the whole machine.
func InInitialUsers(pid int) bool {
	var st unix.Stat_t
	return unix.Stat(Path(pid, "ns/user"), &st) == nil && st.Ino == initialUsers
}

// foreignNamespace says whether a process is known to be in another user
// namespace than this one.
func foreignNamespace(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false
	}
	other, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	return err == nil && other != own
}
