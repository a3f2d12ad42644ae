// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/procid"
)

// regions reads what of a process' address space is in use.
func regions(pid int) ([]patch.Region, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("maps of %d: %w", pid, procid.GoneError(err))
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("stat of %d: %w", pid, procid.GoneError(err))
	}
	heap, err := startOfHeap(stat)
	if err != nil {
		return nil, fmt.Errorf("stat of %d: %w", pid, err)
	}
	found, err := parseRegions(maps)
	// The heap grows from here even before there is any of it.
	return append(found, patch.Region{Start: heap, End: heap, Grows: patch.Upward}), err
}

// parseRegions parses a maps file: "start-end perms offset device inode path".
func parseRegions(maps []byte) (found []patch.Region, err error) {
	for line := range strings.Lines(string(maps)) {
		addresses, rest, _ := strings.Cut(line, " ")
		start, end, ok := strings.Cut(addresses, "-")
		r := patch.Region{}
		var errStart, errEnd error
		r.Start, errStart = strconv.ParseUint(start, 16, 64)
		r.End, errEnd = strconv.ParseUint(end, 16, 64)
		if !ok || errStart != nil || errEnd != nil {
			return nil, fmt.Errorf("malformed line %q in maps", line)
		}
		rest = strings.TrimSpace(rest)
		r.Bare = rest == "r-xp 00000000 00:00 0"
		switch {
		case strings.HasSuffix(rest, "[heap]"):
			r.Grows = patch.Upward
		case strings.HasSuffix(rest, "[stack]"):
			r.Grows = patch.Downward
		}
		found = append(found, r)
	}
	return found, nil
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
