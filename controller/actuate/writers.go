// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

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
	for ancestor := pid; ancestor > 0; {
		stat, err := procid.ReadStat(ancestor)
		if err != nil {
			break // this user may not see it (hidepid), nor what is above it
		}
		ancestor = stat.ParentPID
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
		var st unix.Stat_t
		if fd == except || unix.Stat(descriptorPath(pid, fd), &st) != nil || st.Dev != s.device || st.Ino != s.inode {
			continue
		}
		if flags, err := openFlags(pid, fd); err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY {
			return fd
		}
	}
	return -1
}
