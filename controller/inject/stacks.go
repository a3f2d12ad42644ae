// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
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
	tids, err := procid.Threads(pid)
	if err != nil {
		return stacks{}
	}
	mappings, err := objfile.AllMappings(pid)
	if err != nil {
		return stacks{}
	}
	s.main, s.guarded = stacksIn(mappings)
	s.threads = make(map[int]bool, len(tids))
	for _, tid := range tids {
		s.threads[tid] = true
	}
	return s
}

// stacksIn finds them among the mappings, which are in the order of addresses.
// What is no thread's stack may be among the guarded.
func stacksIn(mappings []objfile.Mapping) (first span, guarded []span) {
	var guardEnd uint64
	for _, m := range mappings {
		s := span{m.Start, m.End}
		switch {
		case m.Path == "[stack]":
			first = s
		case m.Inode != 0 || !m.Private || m.Exec:
		case m.Read && m.Write && s.start == guardEnd:
			guarded = append(guarded, s)
		case !m.Read && !m.Write:
			guardEnd = s.end
		}
	}
	return first, guarded
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
