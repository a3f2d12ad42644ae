// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Identity names one process image for good, also across reboots.
type Identity struct {
	// BootID is /proc/sys/kernel/random/boot_id.
	BootID string
	// PID as in the reader's pid namespace.
	PID int
	// StartTicks is the start time in clock ticks since boot.
	StartTicks uint64
	// ExeDevice and ExeInode name the executable. An exec changes them; both
	// are 0 where the reader may not see the executable.
	ExeDevice, ExeInode uint64
	// Image is [Image.Number]: an exec changes it, also of the same program.
	Image uint64
}

// SameProcess says whether both are one process, whatever it executes.
func (i Identity) SameProcess(other Identity) bool {
	return i.BootID == other.BootID && i.PID == other.PID && i.StartTicks == other.StartTicks
}

// SameImage says whether both are one image, as far as both readers could see it.
func (i Identity) SameImage(other Identity) bool {
	same := i.ExeDevice == other.ExeDevice && i.ExeInode == other.ExeInode
	return i.SameProcess(other) && (same || i.ExeInode == 0 || other.ExeInode == 0) &&
		(i.Image == other.Image || i.Image == 0 || other.Image == 0)
}

// Namespace names the pid namespace of this process, in which its pids mean something.
func Namespace() (inode uint64, err error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("pid namespace: %w", err)
	}
	return st.Ino, nil
}

// Of reads the identity of the process that has this pid now. A zombie or no
// process at all is [ErrGone]; so is a pid that changed hands while it was
// read.
func Of(pid int) (Identity, error) {
	identity, before, err := read(pid)
	if err != nil {
		return Identity{}, err
	}
	after, err := liveStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if after.StartTicks != before.StartTicks {
		return Identity{}, fmt.Errorf("pid %d was reused: %w", pid, ErrGone)
	}
	return identity, nil
}

// read reads the identity and the stat file of a process whose pid may change
// hands meanwhile.
func read(pid int) (Identity, Stat, error) {
	stat, device, inode, err := readLive(pid)
	if err != nil {
		return Identity{}, Stat{}, err
	}
	boot, err := BootID()
	return Identity{
		BootID: boot, PID: pid, StartTicks: stat.StartTicks, ExeDevice: device, ExeInode: inode,
		Image: stat.Image.Number(),
	}, stat, err
}

// readLive reads the stat file and names the executable. The thread that shows
// it may end in between, and others go on.
func readLive(pid int) (stat Stat, device, inode uint64, err error) {
	for before, live := 0, 0; ; before = live {
		if stat, err = liveStat(pid); err != nil {
			return Stat{}, 0, 0, err
		}
		live = LiveThread(pid, stat)
		if device, inode, err = ExecutableFile(live); !errors.Is(err, ErrGone) || live == before {
			return stat, device, inode, err
		}
	}
}

// BootID returns the id that the kernel drew at this boot.
func BootID() (string, error) { return bootID() }

var bootID = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
})

func liveStat(pid int) (Stat, error) {
	stat, err := ReadStat(pid)
	if err != nil {
		return Stat{}, fmt.Errorf("pid %d: %w", pid, err)
	}
	if stat.Zombie() {
		return Stat{}, fmt.Errorf("pid %d is a zombie: %w", pid, ErrGone)
	}
	return stat, nil
}

// LiveThread returns a thread of the process whose files in /proc can be read,
// which is the pid itself unless the process is Leaderless and another thread
// still has its memory. /proc/TID works for any thread, although only processes
// are listed.
func LiveThread(pid int, stat Stat) int {
	if !stat.Leaderless() {
		return pid
	}
	tids, err := Threads(pid)
	if err != nil {
		return pid
	}
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		if thread, err := ReadStat(tid); err == nil && !thread.Dead() && thread.VirtualBytes > 0 {
			return tid
		}
	}
	return pid
}

// LiveThreadOf is LiveThread where the process has not been looked at.
func LiveThreadOf(pid int) int {
	stat, err := ReadStat(pid)
	if err != nil {
		return pid // it has ended, which its other files say too
	}
	return LiveThread(pid, stat)
}

// Dying says whether no thread of a process has memory any more, so that it will
// be a zombie in a moment. The kernel shows the size of the memory to everybody.
func Dying(pid int, stat Stat) bool {
	return stat.VirtualBytes == 0 && LiveThread(pid, stat) == pid
}

// ExecutableFile names the file that a process executes. Without permission both numbers
// are 0, and an identity rests on pid and start time. A kernel thread has no executable,
// which looks like a process that is just ending: [ErrGone].
func ExecutableFile(pid int) (device, inode uint64, err error) {
	st, err := FileOf(Path(pid, "exe"))
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return 0, 0, nil
	case err != nil:
		return 0, 0, fmt.Errorf("pid %d: executable: %w", pid, GoneError(err))
	}
	return uint64(st.Dev), st.Ino, nil
}
