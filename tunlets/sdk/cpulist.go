// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"iter"
	"strconv"
	"strings"
)

// CPUList is a set of CPUs as the kernel writes it and as thread.affinity takes
// it: "0-3,8".
type CPUList string

// maxCPU bounds the numbers in a list; no kernel is built for more.
const maxCPU = 1 << 14

// Numbers yields the CPUs in the order of the list. It ends before anything
// that is no list of CPUs.
func (l CPUList) Numbers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for part := range strings.SplitSeq(string(l), ",") {
			low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
			first, err := strconv.ParseUint(low, 10, 32)
			last := first
			if err == nil && isRange {
				last, err = strconv.ParseUint(high, 10, 32)
			}
			if err != nil || last >= maxCPU {
				return
			}
			for n := first; n <= last; n++ {
				if !yield(int(n)) {
					return
				}
			}
		}
	}
}

// Count is how many CPUs are in the list.
func (l CPUList) Count() (n int) {
	for range l.Numbers() {
		n++
	}
	return n
}

// Has says whether a CPU is in the list.
func (l CPUList) Has(cpu int) bool {
	for n := range l.Numbers() {
		if n == cpu {
			return true
		}
	}
	return false
}
