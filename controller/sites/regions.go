// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// mapped keeps the mappings of a process for a moment. It is for one goroutine; nil
// keeps nothing.
type mapped struct {
	mappings []objfile.Mapping
	used     []patch.Region // by them; nil: nobody has asked
	stale    time.Time      // when they are to be read again
}

// mappingsAge is how old they may be, in multiples of the time that reading them takes:
// a library that is unloaded meanwhile must not be written to for long.
const mappingsAge = 20

// all are the mappings of the process, as of a moment ago. Code that was unloaded since
// is not what is compared before it is changed.
func (m *mapped) all(pid int) ([]objfile.Mapping, error) {
	if m == nil {
		return objfile.AllMappings(pid)
	}
	now := time.Now()
	if now.Before(m.stale) {
		return m.mappings, nil
	}
	mappings, err := objfile.AllMappings(pid)
	if err == nil {
		*m = mapped{mappings: mappings, stale: time.Now().Add(mappingsAge * time.Since(now))}
	}
	return mappings, err
}

// regions is what of the address space is in use, as of a moment ago. No memory is mapped
// over what came since.
func (m *mapped) regions(pid int) ([]patch.Region, error) {
	mappings, err := m.all(pid)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return regions(pid, mappings)
	case m.used == nil:
		m.used, err = regions(pid, mappings)
	}
	return m.used, err
}

// reread has them read anew, because some were made.
func (m *mapped) reread() {
	if m != nil {
		m.stale = time.Time{}
	}
}

// regions reads what of a process' address space is in use beside its mappings.
func regions(pid int, mappings []objfile.Mapping) ([]patch.Region, error) {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return nil, err
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
	return append(regionsOf(mappings, stack), patch.Region{Start: stat.HeapStart, End: stat.HeapStart, Grows: patch.Upward}), nil
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
