// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// regions reads what of a process' address space is in use.
func regions(pid int) ([]patch.Region, error) {
	mappings, err := objfile.AllMappings(pid)
	if err != nil {
		return nil, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("stat of %d: %w", pid, procid.GoneError(err))
	}
	heap, err := startOfHeap(stat)
	if err != nil {
		return nil, fmt.Errorf("stat of %d: %w", pid, err)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)) // prlimit(2) needs a capability
	if err != nil {
		return nil, fmt.Errorf("limits of %d: %w", pid, procid.GoneError(err))
	}
	stack, err := stackLimit(limits)
	if err != nil {
		return nil, fmt.Errorf("limits of %d: %w", pid, err)
	}
	// The heap grows from here even before there is any of it.
	return append(regionsOf(mappings, stack), patch.Region{Start: heap, End: heap, Grows: patch.Upward}), nil
}

// regionsOf takes the first thread's stack for one that grows up to a limit, in bytes,
// or to what is mapped below. Without address space randomisation libraries lie right
// below that.
func regionsOf(mappings []objfile.Mapping, stack uint64) (found []patch.Region) {
	for i, m := range mappings {
		r := patch.Region{Start: m.Start, End: m.End, Bare: isBare(m)}
		switch {
		case m.Inode != 0:
		case m.Path == "[heap]":
			r.Grows = patch.Upward
		case m.Path == "[stack]":
			r.Grows, r.Room = patch.Downward, stack
			if i > 0 {
				r.Room = min(stack, m.Start-mappings[i-1].End)
			}
		}
		found = append(found, r)
	}
	return found
}

// isBare says whether a mapping is as DMLib makes those for islands: anonymous,
// private, without a name, readable and executable.
func isBare(m objfile.Mapping) bool {
	return m == objfile.Mapping{Start: m.Start, End: m.End, Read: true, Exec: true, Private: true}
}

// startOfHeap returns start_brk, field 47 of /proc/PID/stat. The second field
// is a name that may hold anything.
func startOfHeap(stat []byte) (uint64, error) {
	const field, afterName = 47, 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= field-afterName {
		return 0, errors.New("too few fields")
	}
	return strconv.ParseUint(string(fields[field-afterName]), 10, 64)
}

// stackLimit returns how far the first thread's stack may grow, bytes, of what
// /proc/PID/limits says.
func stackLimit(limits []byte) (uint64, error) {
	_, rest, found := bytes.Cut(limits, []byte("Max stack size"))
	fields := bytes.Fields(rest)
	switch {
	case !found || len(fields) == 0:
		return 0, errors.New("no stack size")
	case string(fields[0]) == "unlimited":
		return math.MaxUint64, nil
	}
	return strconv.ParseUint(string(fields[0]), 10, 64)
}
