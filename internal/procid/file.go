// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Path is that of a file which /proc has of a process.
func Path(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// Executable returns the path of a process' program as it was executed, though it may
// have been deleted or replaced since; empty where it cannot be seen.
func Executable(pid int) string {
	path, err := os.Readlink(Path(pid, "exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

// firstPiece is more than most files of /proc hold: one read takes all, the
// next finds the end.
const firstPiece = 2048

// ReadFile returns /proc/PID/name, or its first limit bytes. It is os.ReadFile
// without the system calls by which the os package finds out whether a file
// can be waited for: three or four instead of eight, for files that are read
// once for each process of a job. [ErrGone] if the process has ended.
func ReadFile(pid int, name string, limit int) ([]byte, error) {
	fd, err := openRetrying(Path(pid, name))
	if err != nil {
		return nil, fmt.Errorf("open %s of %d: %w", name, pid, GoneError(err))
	}
	defer unix.Close(fd)
	data := make([]byte, 0, min(firstPiece, limit))
	for len(data) < limit {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := unix.Read(fd, data[len(data):min(cap(data), limit)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("read %s of %d: %w", name, pid, GoneError(err))
		case n <= 0:
			return data, nil
		default:
			data = data[:len(data)+n]
		}
	}
	return data, nil
}

func openRetrying(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// FileOf returns what the kernel has in its memory of the file that a path leads to,
// without asking whoever serves its file system, who may never answer: device, inode,
// type, owner, mode, size and times. All but the first three may be old on a file system
// that has a server. The way there must not block: it is a link of /proc, such as
// /proc/PID/exe.
func FileOf(path string) (unix.Stat_t, error) {
	return remembered(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT)
}

// FileAt is FileOf for the file of a descriptor of ours.
func FileAt(fd int) (unix.Stat_t, error) { return remembered(fd, "", unix.AT_EMPTY_PATH) }

func remembered(dir int, path string, flags int) (unix.Stat_t, error) {
	var known unix.Statx_t
	err := unix.Statx(dir, path, unix.AT_STATX_DONT_SYNC|flags, unix.STATX_BASIC_STATS, &known)
	if err != nil {
		return unix.Stat_t{}, err
	}
	return unix.Stat_t{
		Dev: unix.Mkdev(known.Dev_major, known.Dev_minor), Rdev: unix.Mkdev(known.Rdev_major, known.Rdev_minor),
		Ino: known.Ino, Uid: known.Uid, Mode: uint32(known.Mode), Size: int64(known.Size),
		Mtim: unix.Timespec{Sec: known.Mtime.Sec, Nsec: int64(known.Mtime.Nsec)},
		Ctim: unix.Timespec{Sec: known.Ctime.Sec, Nsec: int64(known.Ctime.Nsec)},
	}, nil
}

// MaxEnvironBytes is what the kernel lets a program have in its environment, by
// default; no more is read of it.
const MaxEnvironBytes = 2 << 20

// Environ returns the environment that a process was started with, an entry for each
// variable. The program may have overwritten it with anything. [ErrGone] if the process
// has ended.
func Environ(pid int) ([][]byte, error) {
	content, err := ReadFile(pid, "environ", MaxEnvironBytes)
	if err != nil {
		return nil, err
	}
	return bytes.Split(content, []byte{0}), nil
}

// SetName gives this process the name that ps and top show, of which the kernel keeps 15
// bytes. One that was executed as /proc/self/exe is called exe otherwise.
func SetName(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // without /proc it keeps the one it has
}

// AuxExecuted is AT_EXECFN of getauxval(3): the address of the path that
// execve(2) was given.
const AuxExecuted = 31

// AuxEntry is AT_ENTRY: the address at which the program begins, after the dynamic
// loader.
const AuxEntry = 9

// AuxRandom is AT_RANDOM: the address of 16 random bytes, which the kernel draws anew for
// every program that is executed.
const AuxRandom = 25

// maxAuxiliaryBytes is more than the kernel writes: some twenty pairs.
const maxAuxiliaryBytes = 4096

// Auxiliary returns a value of the auxiliary vector that the kernel gave to the
// process' present image, 0 if it is not there. [ErrGone] if it has ended. Only
// 64-bit processes are understood.
func Auxiliary(pid int, key uint64) (uint64, error) {
	vector, err := ReadFile(pid, "auxv", maxAuxiliaryBytes)
	if err != nil {
		return 0, fmt.Errorf("auxiliary vector: %w", err)
	}
	return auxiliary(vector, key), nil
}

func auxiliary(vector []byte, key uint64) uint64 {
	const word = 8
	for ; len(vector) >= 2*word; vector = vector[2*word:] {
		if binary.NativeEndian.Uint64(vector) == key {
			return binary.NativeEndian.Uint64(vector[word:])
		}
	}
	return 0
}
