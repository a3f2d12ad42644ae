// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	pageBytes = 4096
	// maxMaps bounds a maps file; see objfile.
	maxMaps = 32 << 20
	// leastGap keeps away from what grows.
	leastGap = 1 << 30
)

// FreePage finds a page far from everything that a process has mapped: in the
// middle of the widest gap, which is 1 GiB wide at least. It may be taken by the time
// it is mapped.
func FreePage(pid int) (uint64, error) {
	maps, err := procid.ReadFile(pid, "maps", maxMaps)
	if err != nil {
		return 0, err
	}
	var last, from, wide uint64
	for line := range bytes.Lines(maps) {
		start, end, ok := bounds(line)
		if !ok {
			continue
		}
		if last != 0 && start > last && start-last > wide {
			from, wide = last, start-last
		}
		last = end
		if bytes.Contains(line, []byte("[stack]")) {
			break // beyond it is the kernel's
		}
	}
	if wide < leastGap {
		return 0, errors.New("no room in the address space of the process")
	}
	return (from + wide/2) &^ (pageBytes - 1), nil
}

// bounds reads the addresses that a line of a maps file begins with.
func bounds(line []byte) (start, end uint64, ok bool) {
	low, rest, _ := bytes.Cut(line, []byte("-"))
	high, _, _ := bytes.Cut(rest, []byte(" "))
	start, err := strconv.ParseUint(string(low), 16, 64)
	if err != nil {
		return 0, 0, false
	}
	end, err = strconv.ParseUint(string(high), 16, 64)
	return start, end, err == nil
}
