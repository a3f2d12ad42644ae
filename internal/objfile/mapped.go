// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// ErrReplaced says that the file that a process has mapped cannot be opened
// any more: it was replaced or deleted, and the kernel's own way to it
// (/proc/PID/map_files) needs CAP_CHECKPOINT_RESTORE.
var ErrReplaced = errors.New("mapped file was replaced or deleted")

// OpenMapped opens the very file that a process has mapped, by one of these
// ways, the next where one fails:
//   - /proc/PID/map_files, which cannot be wrong, but needs privileges;
//   - /proc/PID/exe, for the program itself, also when it was deleted;
//   - the path, as seen from the process's root and as seen from ours.
//
// Whatever was opened must have the inode that is mapped: a path is only a
// name, and the process's owner can rename files.
func OpenMapped(pid int, m Mapping) (*os.File, error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	ways := []string{
		fmt.Sprintf("%s/map_files/%x-%x", proc, m.Start, m.End),
		proc + "/exe", proc + "/root" + m.Path, m.Path,
	}
	for _, way := range ways {
		file, err := openRegular(way)
		if err != nil {
			continue
		}
		if isMapped(file, m) {
			return file, nil
		}
		file.Close()
	}
	if _, err := os.Stat(proc); err != nil {
		return nil, fmt.Errorf("pid %d: %w", pid, procid.GoneError(err))
	}
	return nil, fmt.Errorf("%s in pid %d: %w", m.Path, pid, ErrReplaced)
}

// isMapped says whether a file is the mapped one. On btrfs and overlayfs
// stat(2) tells another device than the maps file does; then one page is
// mapped here and looked up in our own maps file, which uses the same words.
func isMapped(file *os.File, m Mapping) bool {
	var st unix.Stat_t
	if unix.Fstat(int(file.Fd()), &st) != nil {
		return false
	}
	if uint64(st.Dev) == m.Device && st.Ino == m.Inode {
		return true
	}
	device, inode, err := identityInMaps(file)
	return err == nil && device == m.Device && inode == m.Inode
}

func identityInMaps(file *os.File) (device, inode uint64, err error) {
	page, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return 0, 0, fmt.Errorf("map %s: %w", file.Name(), err)
	}
	defer unix.Munmap(page)
	mappings, err := Mappings(os.Getpid())
	if err != nil {
		return 0, 0, err
	}
	address := addressOf(page)
	for _, m := range mappings {
		if address >= m.Start && address < m.End {
			return m.Device, m.Inode, nil
		}
	}
	return 0, 0, fmt.Errorf("map %s: %w", file.Name(), ErrReplaced)
}

// addressOf returns where a mapping lies in our own address space.
func addressOf(page []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(page)))) }
