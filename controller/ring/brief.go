// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MaxBrief is how many programs a process can be told of by SetBrief.
const MaxBrief = briefCount

// Brief is the file of a program that has always been over before anything could be
// done in it.
type Brief struct {
	// Device and Inode as stat(2) has them.
	Device, Inode uint64
	// Changed is when the file was last changed, in nanoseconds: one that is changed
	// is another program.
	Changed int64
}

// BriefAt names the file at a path.
func BriefAt(path string) (Brief, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_NO_AUTOMOUNT); err != nil {
		return Brief{}, fmt.Errorf("program that is brief: %w", &os.PathError{Op: "stat", Path: path, Err: err})
	}
	return Brief{Device: uint64(st.Dev), Inode: st.Ino, Changed: st.Ctim.Nano()}, nil
}

// SetBrief tells the process which programs it is to execute without DMLib, at most
// MaxBrief; none to begin with. It obeys from its next exec on, and until Detach.
func (m *Memory) SetBrief(programs []Brief) {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return
	}
	m.control.Lock()
	defer m.control.Unlock()
	store32(m.data, headerBriefCount, 0)
	programs = programs[:min(len(programs), MaxBrief)]
	for i, p := range programs {
		at := headerBrief + i*briefSize
		store64(m.data, at+briefDevice, p.Device)
		store64(m.data, at+briefInode, p.Inode)
		store64(m.data, at+briefChanged, uint64(p.Changed))
	}
	store32(m.data, headerBriefCount, uint32(len(programs)))
}
