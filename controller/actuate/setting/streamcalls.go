// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// leaving are functions after which what a stream holds is written twice, late,
// or never, or that write past it.
var leaving = []string{
	"dprintf", "vdprintf", "splice",
	"fork", "vfork", "_Fork", "clone", "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve",
	"posix_spawn", "posix_spawnp", "system", "popen", "_exit", "_Exit", "quick_exit",
}

// closing is what gnulib's close_stdout, which most of GNU's programs have for
// their end, asks a stream before it closes it; only after that it calls _exit, if
// the stream could not be closed.
const closing = "__fpending"

// mayHoldBack refuses to have a stream hold back whole lines in a program that
// may rely on their being written at once.
func (s stdioStream) mayHoldBack() error {
	called, err := calls(s.process, append([]string{closing}, leaving...), unclosed)
	if err == nil && len(called) > 0 {
		err = fmt.Errorf("the program may call %s, where lines that are held back would be lost, late, overtaken or written twice", strings.Join(called, ", "))
	}
	return err
}

// unclosed leaves out the _exit of an object that closes its streams before it.
func unclosed(called []string) []string {
	if !slices.Contains(called, closing) {
		return called
	}
	return slices.DeleteFunc(called, func(name string) bool { return name == closing || name == "_exit" })
}

// callsAny says which of the functions objects of a process call that are not
// of the C library.
func callsAny(process access.Process, functions []string) ([]string, error) {
	return calls(process, functions, func(called []string) []string { return called })
}

// calls does as callsAny for those functions that matter of what an object calls.
func calls(process access.Process, functions []string, matter func(called []string) []string) (called []string, err error) {
	images, err := process.Images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if image.Matches("libc.so*") || image.Matches("ld-linux*") || image.Matches("libattune-dm*") {
			continue
		}
		slots, err := image.GOTSlots(functions...)
		if err != nil {
			return nil, err
		}
		var ofImage []string
		for _, slot := range slots {
			ofImage = append(ofImage, slot.Symbol)
		}
		for _, name := range matter(ofImage) {
			if !slices.Contains(called, name) {
				called = append(called, name)
			}
		}
	}
	return called, nil
}

// soleWriter refuses a stream to whose file somebody else may write: another
// descriptor of the process, as of 2>&1, or a process beside it. What the stream
// holds back would come after what they write later, and in the middle of their
// lines. Processes that wait for this one, as shells do, hold its descriptors
// without using them: its ancestors are left out, and Attune is.
func (s stdioStream) soleWriter() error {
	if s.sink.null {
		return nil
	}
	pid := s.process.PID()
	pids, err := procid.List()
	if err != nil {
		return err
	}
	waiting := map[int]bool{os.Getpid(): true}
	for ancestor := range procid.Ancestors(pid) { // as far as this user may see (hidepid)
		waiting[ancestor] = true
	}
	for _, other := range pids {
		if waiting[other] {
			continue
		}
		except := -1
		if other == pid {
			except = s.state.fd
		}
		if fd := s.sink.writer(other, except); fd >= 0 {
			return fmt.Errorf("descriptor %d of process %d writes to the same file: lines that are held back would change their order", fd, other)
		}
	}
	return nil
}

// writer returns a descriptor of a process that writes to the file, but for one;
// -1: none that this user may see.
func (s sink) writer(pid, except int) int {
	numbers, err := procid.AppendNumbers(nil, fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return -1 // it has ended, or is somebody else's
	}
	for _, fd := range numbers {
		if fd != except && s.writtenBy(pid, fd) {
			return fd
		}
	}
	return -1
}

// writtenBy says whether a descriptor writes to the file. A server of files that is out of
// reach may never answer for one: the kernel's own description of the descriptor is read
// first, and of the few that may be of this file it is asked for what it knows itself.
func (s sink) writtenBy(pid, fd int) bool {
	d, err := procid.ReadDescriptor(pid, fd)
	if err != nil || d.Flags&unix.O_ACCMODE == unix.O_RDONLY || d.Inode != 0 && d.Inode != s.inode {
		return false
	}
	st, err := procid.FileOf(descriptorPath(pid, fd))
	return err == nil && st.Dev == s.device && st.Ino == s.inode
}
