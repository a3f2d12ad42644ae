// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// madePrefix begins the names of groups made here. The inode number of the maker's pid namespace, its
// process id there, and a number that makes the name a new one follow.
const madePrefix = "attune-account-"

// madeTries bounds how many names are tried.
const madeTries = 1000

// Made is a control group for one command, below that of this process: one of
// version 2, one of the memory controller of version 1, or both. It limits nothing.
type Made struct {
	v2, memory string // directories; empty: none
	file       *os.File
}

// Make makes groups. Those that a maker left behind who was killed are removed.
// The caller must Remove them.
func Make() (*Made, error) {
	membership, mounts, err := texts("/proc/self/cgroup") // whatever number this process has in the /proc that is here
	if err != nil {
		return nil, err
	}
	m := &Made{}
	v2, err2 := makeBelow(membership, mounts, "")
	memory, err1 := makeBelow(membership, mounts, "memory")
	m.v2, m.memory = v2, memory
	if v2 == "" && memory == "" {
		return nil, errors.Join(err2, err1)
	}
	if v2 == "" {
		return m, nil
	}
	fd, err := unix.Open(v2, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", v2, err), m.Remove())
	}
	m.file = os.NewFile(uintptr(fd), v2)
	return m, nil
}

func makeBelow(membership, mounts, controller string) (string, error) {
	path, found := Path(membership, controller)
	if !found {
		return "", fmt.Errorf("this process is in no control group of %s", hierarchyName(controller))
	}
	own, found := Dir(mounts, controller, path)
	if !found {
		return "", fmt.Errorf("control groups of %s are not mounted here", hierarchyName(controller))
	}
	namespace, err := procid.Namespace()
	if err != nil {
		return "", err
	}
	prefix := filepath.Join(own, fmt.Sprintf("%s%d-", madePrefix, namespace))
	removeStale(prefix)
	for n := range madeTries {
		dir := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), n)
		if err = os.Mkdir(dir, 0o755); err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrExist) { // a group that is there has limits and processes of its own
			break
		}
	}
	return "", err
}

func hierarchyName(controller string) string {
	if controller == "" {
		return "version 2"
	}
	return "version 1 (" + controller + ")"
}

// removeStale removes groups of this pid namespace whose makers are gone, unless processes are in them.
// prefix is what their paths begin with.
func removeStale(prefix string) {
	dirs, _ := filepath.Glob(prefix + "*") // the pattern is right
	for _, dir := range dirs {
		maker, _, _ := strings.Cut(strings.TrimPrefix(dir, prefix), "-")
		pid, err := strconv.Atoi(maker)
		if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Rmdir(dir) // not empty, or somebody was faster
		}
	}
}

// DropV2 removes the group of version 2, which does not serve.
func (m *Made) DropV2() error {
	if m.v2 == "" {
		return nil
	}
	err := errors.Join(m.file.Close(), removeGroup(m.v2))
	m.v2, m.file = "", nil
	return err
}

// FD is the descriptor of the group of version 2, for clone3; 0 if there is none.
func (m *Made) FD() int {
	if m.file == nil {
		return 0
	}
	return int(m.file.Fd())
}

// Enter moves a thread of this process into the group of version 1: what it
// forks begins there.
func (m *Made) Enter(tid int) error { return m.move(tid, m.memory) }

// Leave moves the thread back.
func (m *Made) Leave(tid int) error { return m.move(tid, filepath.Dir(m.memory)) }

func (m *Made) move(tid int, dir string) error {
	if m.memory == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "tasks"), []byte(strconv.Itoa(tid)), 0)
}

// MemoryPeak is the most that the group was charged with, bytes. False where the
// memory controller does not serve it.
func (m *Made) MemoryPeak() (uint64, bool) {
	return m.first("memory.max_usage_in_bytes", "memory.peak")
}

// Memory is what the group is charged with now, bytes. False as with MemoryPeak.
func (m *Made) Memory() (uint64, bool) {
	return m.first("memory.usage_in_bytes", "memory.current")
}

// first reads a number of the group of version 1, or else of version 2.
func (m *Made) first(memory, v2 string) (uint64, bool) {
	n, err := procid.ReadNumber(m.memoryFile(memory, v2))
	return n, err == nil
}

// memoryFile is the path of a file of the memory controller of version 1, or else of version 2; empty:
// there is no group any more.
func (m *Made) memoryFile(memory, v2 string) string {
	switch {
	case m.memory != "":
		return filepath.Join(m.memory, memory)
	case m.v2 != "":
		return filepath.Join(m.v2, v2)
	}
	return ""
}

// MemoryInV2 says whether memory is that of the group of version 2: it is neither charged nor limited for
// who does not begin there.
func (m *Made) MemoryInV2() bool { return m.memory == "" && m.v2 != "" }

// LimitMemory has the kernel let the group be charged with at most that many bytes: it
// reclaims file cache, and kills when that is not enough: on version 2 all of the
// group, on version 1 one of its processes.
func (m *Made) LimitMemory(bytes uint64) error {
	dir, files := m.memory, [][2]string{{"memory.limit_in_bytes", strconv.FormatUint(bytes, 10)}}
	if dir == "" {
		dir, files = m.v2, [][2]string{{"memory.max", strconv.FormatUint(bytes, 10)}, {"memory.oom.group", "1"}}
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file[0]), []byte(file[1]), 0); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	return nil
}

// KilledForMemory says whether the kernel has killed because the group had as many bytes. It also
// counts those that it kills for the limit of a group above, or because the node has no memory left:
// then the group was not charged with as many. Where the peak is not known (version 2 before
// Linux 5.19) each that was killed counts.
func (m *Made) KilledForMemory(bytes uint64) bool {
	if peak, known := m.MemoryPeak(); known && peak < bytes {
		return false
	}
	killed, err := procid.ReadField(m.memoryFile("memory.oom_control", "memory.events"), "oom_kill")
	return err == nil && killed > 0
}

// Kill kills all processes of the group of version 2, if there is one, those that
// are forked meanwhile too. From Linux 5.14 on.
func (m *Made) Kill() {
	if m.v2 != "" {
		_ = os.WriteFile(filepath.Join(m.v2, "cgroup.kill"), []byte("1"), 0) // not there before 5.14
	}
}

// Remove moves processes that still are in the groups to where this process is,
// and removes the groups.
func (m *Made) Remove() error {
	var errs []error
	if m.file != nil {
		errs = append(errs, m.file.Close())
	}
	for _, dir := range []string{m.v2, m.memory} {
		if dir != "" {
			errs = append(errs, removeGroup(dir))
		}
	}
	return errors.Join(errs...)
}

const (
	// removeTime bounds for how long processes may be forked while others are moved, or take to
	// end: one that is ending cannot be moved any more.
	removeTime = 5 * time.Second
	// removePause is how long they get for it at a time.
	removePause = time.Millisecond
)

func removeGroup(dir string) (err error) {
	for start := time.Now(); time.Since(start) < removeTime; time.Sleep(removePause) {
		if err = unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		list, readErr := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if readErr != nil {
			return readErr
		}
		for pid := range strings.FieldsSeq(string(list)) {
			// One that ends meanwhile is not there to be moved.
			_ = os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.procs"), []byte(pid), 0)
		}
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
