// SPDX-License-Identifier: Apache-2.0

// Package cpulist reads and writes sets of CPUs as the kernel does: "0-3,8". Safe
// for concurrent use.
package cpulist

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Max is more CPUs than any kernel is built for.
const Max = 16384

// Parse returns the numbers of a list, ascending, without repetitions.
func Parse(text string) ([]int, error) {
	var has [Max]bool // each once, however often the text names it
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		low, errLow := strconv.ParseUint(first, 10, 16)
		high, errHigh := strconv.ParseUint(last, 10, 16)
		if errLow != nil || errHigh != nil || low > high || high >= Max {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 0-3,8", text)
		}
		for cpu := low; cpu <= high; cpu++ {
			has[cpu] = true
		}
	}
	var cpus []int
	for cpu, in := range has {
		if in {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// Online returns the CPUs that this machine uses at the moment.
func Online() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSpace(string(text)))
}

// Format writes ascending numbers as a list.
func Format(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		end := i
		for end+1 < len(cpus) && cpus[end+1] == cpus[end]+1 {
			end++
		}
		part := strconv.Itoa(cpus[i])
		if end > i {
			part += "-" + strconv.Itoa(cpus[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// Intersect returns the numbers that are in both of two ascending lists.
func Intersect(a, b []int) []int {
	var both []int
	for _, cpu := range a {
		if _, found := slices.BinarySearch(b, cpu); found {
			both = append(both, cpu)
		}
	}
	return both
}
