// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// LeftOut says, as what is missing of a tree, that so many processes are not in it.
func LeftOut(processes uint64) string {
	return fmt.Sprintf("%d processes that took less are left out; the sums have them", processes)
}

// WithLargest returns the account with the n processes of its tree that took most CPU time, the command
// among them, in their order. What is missing says so.
func (a Account) WithLargest(n int) Account {
	if n >= len(a.Tree) {
		return a
	}
	places := make([]int, len(a.Tree))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places[1:], func(i, j int) int { return cmp.Compare(a.Tree[j].cpu(), a.Tree[i].cpu()) })
	kept := make([]Process, 0, n)
	for _, i := range slices.Sorted(slices.Values(places[:n])) {
		kept = append(kept, a.Tree[i])
	}
	why := LeftOut(uint64(len(a.Tree) - n))
	if before := a.Missing["tree"]; before != "" {
		why = before + "; " + why
	}
	a.Missing = maps.Clone(a.Missing)
	if a.Missing == nil {
		a.Missing = make(map[string]string)
	}
	a.Tree, a.Missing["tree"] = kept, why
	return a
}

// cpu is the CPU time of a process in seconds; 0: not known.
func (p *Process) cpu() float64 {
	if p.CPUSeconds == nil {
		return 0
	}
	return *p.CPUSeconds
}
