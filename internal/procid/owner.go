// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
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
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("owner of %d: %w", pid, GoneError(err))
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return 0, fmt.Errorf("owner of %d: %w", pid, err)
	}
	status, err := io.ReadAll(io.LimitReader(file, maxStatusBytes))
	if err != nil {
		return 0, fmt.Errorf("owner of %d: %w", pid, GoneError(err))
	}
	r, err := parseRights(status)
	if err != nil {
		return 0, fmt.Errorf("owner of %d: %w", pid, err)
	}
	// What is in another user namespace has capabilities there only.
	r.capable = r.capable && !foreignNamespace(pid)
	return r.owner(st.Uid), nil
}

// maxStatusBytes is more than a status file of /proc has.
const maxStatusBytes = 64 << 10

// rights are what a process may do, as its status says.
type rights struct {
	uid     uint32 // effective
	mixed   bool   // its user or group ids differ
	capable bool   // it has capabilities
}

// owner is whose process it is. file is the owner of its files in /proc: root's
// are those of a process that cannot be dumped.
func (r rights) owner(file uint32) uint32 {
	if r.mixed || r.capable || file != r.uid {
		return 0
	}
	return r.uid
}

// parseRights reads the content of /proc/PID/status.
func parseRights(status []byte) (rights, error) {
	var r rights
	var seen int
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		switch string(name) {
		case "Uid", "Gid": // real, effective, saved, of the file system
			if len(fields) != 4 {
				return rights{}, fmt.Errorf("%w: status with %q", ErrMalformed, line)
			}
			id, err := strconv.ParseUint(string(fields[1]), 10, 32)
			if err != nil {
				return rights{}, fmt.Errorf("%w: status with %q", ErrMalformed, line)
			}
			if string(name) == "Uid" {
				r.uid = uint32(id)
			}
			r.mixed = r.mixed || !allEqual(fields)
		case "CapPrm":
			if len(fields) != 1 {
				return rights{}, fmt.Errorf("%w: status with %q", ErrMalformed, line)
			}
			r.capable = len(bytes.Trim(fields[0], "0")) > 0
		default:
			continue
		}
		seen++
	}
	if seen != 3 {
		return rights{}, fmt.Errorf("%w: status without ids or capabilities", ErrMalformed)
	}
	return r, nil
}

func allEqual(fields [][]byte) bool {
	for _, field := range fields {
		if !bytes.Equal(field, fields[0]) {
			return false
		}
	}
	return true
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
