// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/procid"
)

// Hold takes hold of processes; the caller lets go of those that it gets, also
// after an error.
func Hold(pids []int) ([]*procid.Process, error) {
	var processes []*procid.Process
	for _, pid := range pids {
		held, err := procid.Open(pid)
		if err != nil {
			return processes, fmt.Errorf("process %d: %w", pid, Gone(pid, err))
		}
		processes = append(processes, held)
	}
	return processes, nil
}

// goneError says in other words what it wraps.
type goneError struct {
	text string
	error
}

func (e goneError) Error() string { return e.text }
func (e goneError) Unwrap() error { return e.error }

// Gone is an error of a process in plain words if it says that there is no such process,
// which it wraps; any other as it is.
func Gone(pid int, err error) error {
	stat, statErr := procid.ReadStat(pid)
	switch {
	case err != nil && statErr == nil && stat.Kernel: // without a program, it seems gone to some
		return goneError{"it is a kernel thread", err}
	case errors.Is(err, procid.ErrGone):
		return goneError{"there is none, or it has ended", err}
	}
	return err
}

// LetGo ends what Hold began.
func LetGo(processes []*procid.Process) {
	for _, held := range processes {
		_ = held.Close() // a pidfd
	}
}

// Permitted says in plain words why processes are not for this user to look into, if so, and
// what helps.
func Permitted(pids []int) error {
	for _, pid := range pids {
		maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)) // as ptrace(2) reads memory
		if err == nil {
			_ = maps.Close() // read only
		}
		owner, ownerErr := Owner(pid)
		switch {
		case !errors.Is(err, fs.ErrPermission) || ownerErr != nil:
		case owner == os.Geteuid() || os.Geteuid() == 0:
			return fmt.Errorf("no permission to look into process %d: %s", pid, procid.Barrier(pid))
		default:
			return &exitcode.Error{
				Code: exitcode.Failure, Err: fmt.Errorf("process %d belongs to user %s: no permission to look into it", pid, UserName(owner)),
				Remedy: "run as that user, or as root; in a session of your site name it with --session",
			}
		}
	}
	return nil
}

// Called is a process by its number and, while it is there, its name.
func Called(pid int) string {
	if name := Name(pid); name != "?" {
		return fmt.Sprintf("process %d (%s)", pid, name)
	}
	return fmt.Sprintf("process %d", pid)
}

// Name is the name of a process; "?" once it has ended.
func Name(pid int) string {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return "?"
	}
	return printable.Line(stat.Comm)
}

// Descends tells whether a process is one of those named or a descendant
// of one; with all, every process is.
func Descends(pids []int, all bool) func(pid int) bool {
	return func(pid int) bool {
		if all {
			return true
		}
		for ancestor := range procid.Ancestors(pid) {
			if slices.Contains(pids, ancestor) {
				return true
			}
		}
		return slices.Contains(pids, pid)
	}
}

// IDs lists the processes, ascending.
func IDs() []int {
	pids, _ := procid.List() // none where /proc is not to be read
	slices.Sort(pids)
	return pids
}

// Owner is the user that a process runs as.
func Owner(pid int) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &st); err != nil {
		return 0, procid.GoneError(err)
	}
	return int(st.Uid), nil
}

// Begin is when a process began, to a hundredth of a second.
func Begin(pid int) (time.Time, error) {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return time.Time{}, err
	}
	age := clock.SinceBoot() - time.Duration(stat.StartTicks)*procid.Tick
	return time.Now().Add(-age), nil
}

// CompleteOwn lists this user's processes, for the shell's completion.
func CompleteOwn() []string {
	var list []string
	for _, pid := range IDs() {
		owner, err := Owner(pid)
		stat, statErr := procid.ReadStat(pid)
		if err != nil || statErr != nil || owner != os.Geteuid() || stat.Zombie() || stat.Kernel || pid == os.Getpid() {
			continue
		}
		list = append(list, fmt.Sprintf("%d\t%s", pid, printable.Line(stat.Comm)))
	}
	return list
}

// UserName is the name of a user, or the id.
func UserName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}
