// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/procid"
)

// ErrMalformedMaps says that a maps file does not look as the kernel writes it.
var ErrMalformedMaps = errors.New("malformed maps file")

// maxMapsBytes bounds a maps file; the kernel's own limit of 65,530 mappings
// makes about 8 MB.
const maxMapsBytes = 32 << 20

// maxMapsAttempts bounds how often the file of a process that goes on is read, each time
// empty since it has executed another program meanwhile: a reader that waits for a CPU
// may meet that some times in a row.
const maxMapsAttempts = 1000

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	// Start and End are addresses in the process; End is the first behind.
	Start, End uint64
	// Offset in the file, bytes.
	Offset uint64
	// Device as in stat(2) and Inode name the file; 0 where none is mapped.
	Device, Inode uint64
	// Path of the file at the time it was mapped or last renamed, without
	// " (deleted)". Where none is mapped, what the kernel calls it ("[heap]",
	// "[stack]", "[vdso]", "[anon:NAME]"), or nothing.
	Path string
	// Read, Write and Exec are the permissions.
	Read, Write, Exec bool
	// Private says that stores are this process's own.
	Private bool
}

// Mappings reads which files a process has mapped, in the order of addresses.
// [procid.ErrGone] if the process has ended, also if it is about to: what has no
// memory at all (any more), of which a thread of the kernel is the other case,
// must not look like a program that has mapped nothing.
func Mappings(pid int) ([]Mapping, error) {
	all, err := AllMappings(pid)
	return Files(all), err
}

// AllMappings is Mappings with those that map no file.
func AllMappings(pid int) ([]Mapping, error) { return allMappings(pid, readMaps) }

func allMappings(pid int, read func(pid int) ([]byte, error)) ([]Mapping, error) {
	// The file shows the memory that the process had when it was opened: nothing, if
	// the process has executed another program since.
	for range maxMapsAttempts {
		data, err := read(pid)
		if err == nil && len(data) > 0 {
			return ParseMaps(data)
		}
		if err == nil {
			err = hasMemory(pid)
		}
		if err != nil {
			return nil, fmt.Errorf("maps of %d: %w", pid, procid.GoneError(err))
		}
	}
	return nil, fmt.Errorf("maps of %d: it executes one program after another", pid)
}

// hasMemory is an error of a process that has none, or not any more.
func hasMemory(pid int) error {
	stat, err := procid.ReadStat(pid)
	if err == nil && (stat.Kernel || stat.Exiting || stat.Zombie()) {
		err = fmt.Errorf("no memory: %w", procid.ErrGone)
	}
	return err
}

func readMaps(pid int) ([]byte, error) {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return bounded.ReadAll("maps", file, maxMapsBytes)
}

// Files are those that map a file.
func Files(mappings []Mapping) (files []Mapping) {
	for _, m := range mappings {
		if m.Inode != 0 {
			files = append(files, m)
		}
	}
	return files
}

// OwnOffset finds where in its file code of this process lies, whether the program is
// position-independent or not.
func OwnOffset(code uintptr) (uint64, error) {
	mappings, err := Mappings(os.Getpid())
	if err != nil {
		return 0, err
	}
	for _, m := range mappings {
		if at := uint64(code); m.Exec && at >= m.Start && at < m.End {
			return at - m.Start + m.Offset, nil
		}
	}
	return 0, fmt.Errorf("this process has no code of a file at %#x", code)
}

// ParseMaps parses the content of a maps file.
func ParseMaps(data []byte) ([]Mapping, error) {
	var mappings []Mapping
	for line := range bytes.Lines(data) {
		m, err := parseMapping(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, err
		}
		mappings = append(mappings, m)
	}
	return mappings, nil
}

// parseMapping parses "start-end perms offset major:minor inode    path".
func parseMapping(line []byte) (Mapping, error) {
	var fields [5][]byte
	rest := line
	for i := range fields {
		fields[i], rest, _ = bytes.Cut(rest, []byte(" "))
	}
	start, end, dash := bytes.Cut(fields[0], []byte("-"))
	major, minor, colon := bytes.Cut(fields[3], []byte(":"))
	var numbers [6]uint64
	for i, word := range [][]byte{start, end, fields[2], major, minor} {
		value, err := strconv.ParseUint(string(word), 16, 64)
		if err != nil || !dash || !colon {
			return Mapping{}, fmt.Errorf("%w: %q", ErrMalformedMaps, line)
		}
		numbers[i] = value
	}
	inode, err := strconv.ParseUint(string(fields[4]), 10, 64)
	if err != nil || len(fields[1]) != 4 || numbers[0] > numbers[1] {
		return Mapping{}, fmt.Errorf("%w: %q", ErrMalformedMaps, line)
	}
	m := Mapping{
		Start: numbers[0], End: numbers[1], Offset: numbers[2],
		Device: unix.Mkdev(uint32(numbers[3]), uint32(numbers[4])), Inode: inode,
		Read: fields[1][0] == 'r', Write: fields[1][1] == 'w', Exec: fields[1][2] == 'x',
		Private: fields[1][3] == 'p', Path: string(bytes.Trim(rest, " ")),
	}
	if inode != 0 {
		name := strings.ReplaceAll(string(bytes.TrimLeft(rest, " ")), `\012`, "\n")
		m.Path = strings.TrimSuffix(name, " (deleted)")
	}
	return m, nil
}

// leastGap keeps away from what grows, bytes.
const leastGap = 1 << 30

// FreePage finds a page far from everything that a process has mapped: in the
// middle of the widest gap, which is 1 GiB wide at least. It may be taken by the time
// it is mapped.
func FreePage(pid int) (uint64, error) {
	mappings, err := AllMappings(pid)
	if err != nil {
		return 0, err
	}
	var last, from, wide uint64
	for _, m := range mappings {
		if last != 0 && m.Start > last && m.Start-last > wide {
			from, wide = last, m.Start-last
		}
		last = m.End
		if m.Path == "[stack]" {
			break // beyond it is the kernel's
		}
	}
	if wide < leastGap {
		return 0, errors.New("no room in the address space of the process")
	}
	return (from + wide/2) &^ uint64(os.Getpagesize()-1), nil
}

// Objects returns the paths of the objects in a list of mappings: what is
// mapped executable, each path once, in the order of addresses.
func Objects(mappings []Mapping) []string {
	var paths []string
	seen := make(map[string]bool)
	for _, m := range mappings {
		if m.Exec && !seen[m.Path] {
			seen[m.Path] = true
			paths = append(paths, m.Path)
		}
	}
	return paths
}
