// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/symname"
)

// knownAs lists the names by which people know the program of a process, beside that
// of its file: the path that was executed, a symbolic link perhaps, and what ps(1)
// shows.
func knownAs(pid int) (names []string) {
	if path, ok := executedAs(pid); ok {
		names = append(names, path, filepath.Base(path))
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		title, _, _ := bytes.Cut(line, []byte{0})
		if words := strings.Fields(string(title)); len(words) > 0 { // "redis-server *:6379", "nginx: worker process"
			names = append(names, filepath.Base(strings.TrimSuffix(words[0], ":")))
		}
	}
	if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		names = append(names, strings.TrimSuffix(string(comm), "\n"))
	}
	return names
}

// executedAs returns the path by which a process executed its program; false where
// the process may not be read.
func executedAs(pid int) (string, bool) {
	const word, atExecutedAs = 8, 31 // AT_EXECFN of getauxval(3)
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return "", false
	}
	for ; len(vector) >= 2*word; vector = vector[2*word:] {
		if binary.LittleEndian.Uint64(vector) == atExecutedAs {
			return stringAt(pid, binary.LittleEndian.Uint64(vector[word:]))
		}
	}
	return "", false
}

// stringAt reads a string of a process that ends with a zero byte, and with it the
// stack of the process at the latest.
func stringAt(pid int, address uint64) (string, bool) {
	const piece = 256
	var text []byte
	for at := address; len(text) < unix.PathMax; at += uint64(piece - at%piece) {
		part := make([]byte, piece-at%piece) // never across the end of a page
		if procmem.Read(pid, at, part) != nil {
			return "", false
		}
		if head, _, ended := bytes.Cut(part, []byte{0}); ended {
			return string(append(text, head...)), true
		}
		text = append(text, part...)
	}
	return "", false
}

// isKnownAs says whether a pattern matches one of the names of the program, or is a
// path that leads to the object by symbolic links.
func (i Image) isKnownAs(pattern string) bool {
	for name := range strings.SplitSeq(i.known, "\x00") {
		if name != "" && match(pattern, name) {
			return true
		}
	}
	if filepath.Base(pattern) == pattern {
		return false
	}
	file, err := filepath.EvalSymlinks(pattern)
	return err == nil && file == i.Path
}

// NoObject is the error of an object that a process has not mapped, with the
// program and what is close to it by its name.
func NoObject(images []Image, object string) error {
	const suggested = 5
	closest := symname.NewSuggestions(filepath.Base(object), suggested)
	program := ""
	for _, image := range images {
		closest.Add([]byte(image.Name()))
		if image.known != "" {
			program = image.Name()
		}
	}
	err := fmt.Errorf("%w: %s", ErrNoObject, object)
	if program != "" {
		err = fmt.Errorf("%w; the program is %s", err, program)
	}
	if names := closest.Names(); len(names) > 0 {
		err = fmt.Errorf("%w; close to it: %s", err, strings.Join(names, ", "))
	}
	return err
}
