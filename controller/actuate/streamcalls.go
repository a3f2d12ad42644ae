// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"slices"
	"strings"
)

// leaving are functions after which what a stream holds is written twice, late,
// or never, or that write past it.
var leaving = []string{
	"dprintf", "vdprintf", "splice",
	"fork", "vfork", "_Fork", "clone", "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve",
	"posix_spawn", "posix_spawnp", "system", "popen", "_exit", "_Exit", "quick_exit",
}

// closing is what gnulib's close_stdout, which most of GNU's programs have for
// their end, asks a stream before it closes it; only after that it calls _exit, if
// the stream could not be closed.
const closing = "__fpending"

// mayHoldBack refuses to have a stream hold back whole lines in a program that
// may rely on their being written at once.
func (s stdioStream) mayHoldBack() error {
	called, err := calls(s.process, append([]string{closing}, leaving...), unclosed)
	if err == nil && len(called) > 0 {
		err = fmt.Errorf("the program may call %s, where lines that are held back would be lost, late, overtaken or written twice", strings.Join(called, ", "))
	}
	return err
}

// unclosed leaves out the _exit of an object that closes its streams before it.
func unclosed(called []string) []string {
	if !slices.Contains(called, closing) {
		return called
	}
	return slices.DeleteFunc(called, func(name string) bool { return name == closing || name == "_exit" })
}

// callsAny says which of the functions objects of a process call that are not
// of the C library.
func callsAny(process Process, functions []string) ([]string, error) {
	return calls(process, functions, func(called []string) []string { return called })
}

// callKind is callsAny for those that matter of what an object calls.
func calls(process Process, functions []string, matter func(called []string) []string) (called []string, err error) {
	images, err := process.Images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if image.Matches("libc.so*") || image.Matches("ld-linux*") || image.Matches("libattune-dm*") {
			continue
		}
		slots, err := image.GOTSlots(functions...)
		if err != nil {
			return nil, err
		}
		var ofImage []string
		for _, slot := range slots {
			ofImage = append(ofImage, slot.Symbol)
		}
		for _, name := range matter(ofImage) {
			if !slices.Contains(called, name) {
				called = append(called, name)
			}
		}
	}
	return called, nil
}
