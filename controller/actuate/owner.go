// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// memoryName is how the memory that DMLib shares with its controller is called
// in a maps file (see ring).
const memoryName = "/memfd:attune"

// maxMaps bounds a maps file; see objfile.
const maxMaps = 32 << 20

// controllerOf finds the living controller of a process: whoever has a
// descriptor of the memory that DMLib there has mapped. 0: nobody.
func controllerOf(pid int) (int, error) {
	maps, err := procid.ReadFile(pid, "maps", maxMaps)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(maps) {
		if !bytes.Contains(line, []byte(memoryName)) {
			continue
		}
		if fields := bytes.Fields(line); len(fields) > 4 {
			inode, err := strconv.ParseUint(string(fields[4]), 10, 64)
			if err == nil {
				return holderOf(inode, pid), nil
			}
		}
	}
	return 0, nil
}

// holderOf finds a process that has a descriptor of a memory file; 0: none
// that may be looked into.
func holderOf(inode uint64, except int) int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || pid == except {
			continue
		}
		directory := fmt.Sprintf("/proc/%d/fd", pid)
		descriptors, err := os.ReadDir(directory)
		if err != nil {
			continue // another user's
		}
		for _, descriptor := range descriptors {
			path := directory + "/" + descriptor.Name()
			var st unix.Stat_t
			if name, err := os.Readlink(path); err == nil && strings.HasPrefix(name, memoryName) &&
				unix.Stat(path, &st) == nil && st.Ino == inode {
				return pid
			}
		}
	}
	return 0
}
