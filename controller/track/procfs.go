// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bytes"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// Bounds of what is taken from a process, which can make all of it as long as
// it likes.
const (
	maxTextBytes    = 4096
	maxArguments    = 128
	maxCommandBytes = 8192
	// maxCgroupBytes is more than a line for each hierarchy with the longest path.
	maxCgroupBytes = 64 << 10
	maxObjects     = 1024
)

func readCommandLine(pid int) []string {
	data, err := procid.ReadFile(pid, "cmdline", maxCommandBytes)
	if err != nil {
		return nil
	}
	return ParseCommandLine(data)
}

// ParseCommandLine splits the content of /proc/PID/cmdline.
func ParseCommandLine(data []byte) []string {
	var words []string
	for len(data) > 0 && len(words) < maxArguments {
		var word []byte
		word, data, _ = bytes.Cut(data, []byte{0})
		words = append(words, strings.ToValidUTF8(string(word), "?"))
	}
	return words
}

// readUID returns 0 where it cannot be told.
func readUID(pid int) uint32 {
	uid, _ := procid.UserID(pid)
	return uid
}

func readObjects(pid int) ([]string, error) {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return nil, err
	}
	paths := objfile.Objects(mappings)
	paths = paths[:min(len(paths), maxObjects)]
	for i, path := range paths {
		paths[i] = strings.ToValidUTF8(path, "?")
	}
	return paths, nil
}

// LinkedGo stands among the objects of a program in Go: its run-time, which others
// have as a library.
const LinkedGo = "linked:go"

// readLinked never returns nil.
func readLinked(pid int) []string {
	file, err := objfile.Open(procid.Path(pid, "exe"))
	if err != nil {
		return []string{} // it has ended, or is another user's
	}
	defer func() { _ = file.Close() }() // read only
	if file.IsGo() {
		return []string{LinkedGo}
	}
	return []string{}
}

func readCPUs(pid int) uint32 {
	n, err := procid.CPUsAllowed(pid)
	if err != nil {
		return 0
	}
	return uint32(n)
}
