// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// stacks are the parts of a process that are certain to be a stack, from the
// bottom guard on, and the threads that were there before they were looked for:
// for as long as one of these lives its stack stays where it is.
type stacks struct {
	threads map[int]bool
	main    span   // of the first thread, as far as it has grown
	guarded []span // directly above memory that nobody can touch
}

// newStacks reads them. What cannot be read is not there.
func newStacks(pid int) (s stacks) {
	tids, err := numbersIn(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return stacks{}
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return stacks{}
	}
	s.main, s.guarded = parseStacks(maps)
	s.threads = make(map[int]bool, len(tids))
	for _, tid := range tids {
		s.threads[tid] = true
	}
	return s
}

// parseStacks finds them in the content of a maps file, in the order of
// addresses. What is no thread's stack may be among the guarded.
func parseStacks(maps []byte) (first span, guarded []span) {
	var guardEnd uint64
	for line := range bytes.Lines(maps) {
		fields := bytes.Fields(line)
		if len(fields) < 5 {
			continue
		}
		start, end, _ := bytes.Cut(fields[0], []byte("-"))
		s := span{address16(start), address16(end)}
		anonymous := string(fields[4]) == "0"
		switch access := string(fields[1]); {
		case len(fields) == 6 && string(fields[5]) == "[stack]":
			first = s
		case anonymous && access == "rw-p" && s.start == guardEnd:
			guarded = append(guarded, s)
		case anonymous && access == "---p":
			guardEnd = s.end
		}
	}
	return first, guarded
}

// address16 is a hexadecimal number as the kernel writes it; 0 if it is none.
func address16(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits), 16, 64)
	return n
}

// of is the stack that a thread of the process is on, from its pointer's mapping
// on, or nothing. The C library keeps the thread's own block, which the thread
// register leads to, at the top of a stack that it has made; a coroutine's, an
// alternate signal stack and one of the program's own making are elsewhere.
func (s stacks) of(pid, tid int, pointer, block uint64) span {
	if !s.threads[tid] {
		return span{}
	}
	if tid == pid && s.main.has(pointer) {
		return s.main
	}
	i, _ := slices.BinarySearchFunc(s.guarded, pointer, func(g span, at uint64) int {
		if g.end <= at {
			return -1
		}
		return 1
	})
	if i < len(s.guarded) && s.guarded[i].has(pointer) && pointer < block && block < s.guarded[i].end {
		return span{s.guarded[i].start, block}
	}
	return span{}
}
