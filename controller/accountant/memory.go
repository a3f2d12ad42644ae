// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"iter"
	"os"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
)

// withOwnMemory are the processes of which no parent among them has the same address space. Until
// it executes a program, a child of vfork(2) has its parent's, and so has that of system(3): it
// must not count twice. The question is asked of a child before its memory is read, for it never
// gets its parent's back. Where the kernel does not tell (see [procid.SharesMemory]), the memory of
// both counts: less would hide memory that there is.
func withOwnMemory(alive []living) iter.Seq[living] {
	listed := make(map[int]living, len(alive))
	for _, p := range alive {
		listed[p.pid] = p
	}
	return func(yield func(living) bool) {
		for _, p := range alive {
			if parent, is := listed[p.parent]; is {
				if same, err := procid.ThreadsShareMemory(p.holder(), parent.holder()); same && err == nil {
					continue
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}

// holder is a thread of a process that has its memory. The only one of most processes need not be
// looked for, which would take half as long as all else of a look.
func (p *living) holder() int {
	if p.threads == 1 {
		return p.pid
	}
	return procid.LiveThreadOf(p.pid)
}

// memoryOf reads a process's statm file, which is all zeroes where its first thread has ended: pages.
func memoryOf(pid int) (size, resident, shared uint64, err error) {
	if size, resident, shared, err = readStatm(pid); err == nil && size == 0 {
		return readStatm(procid.LiveThreadOf(pid))
	}
	return size, resident, shared, err
}

func readStatm(pid int) (size, resident, shared uint64, err error) {
	data, err := os.ReadFile(procid.Path(pid, "statm"))
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = fmt.Sscan(string(data), &size, &resident, &shared)
	return size, resident, shared, err
}

// proportional adds up the memory of processes so that pages that several share
// count once: bytes in memory and swapped out. Processes that may not be looked at are left out;
// known says whether all could.
func proportional(alive []living) (pss, swapped uint64, known bool) {
	known = len(alive) > 0
	for p := range withOwnMemory(alive) {
		var share, swap uint64
		_, err := procid.ReadNumbers(procid.Path(p.holder(), "smaps_rollup"), map[string]*uint64{"Pss": &share, "SwapPss": &swap})
		known = known && err == nil
		pss, swapped = pss+share, swapped+swap
	}
	return pss, swapped, known
}

// fillDoubled says in an account, of what was added up of several processes, why the kernel does not tell
// which of these have one address space, if it does not.
func fillDoubled(a *account.Account, refused error) {
	if refused == nil || a.Processes.Peak != nil && *a.Processes.Peak == 1 {
		return
	}
	for _, name := range []string{"resident", "anonymous", "virtual", "proportional"} {
		name = "memory." + name + "_peak_bytes"
		if a.Accuracy[name] == account.Sampled {
			a.Missing[name] = fmt.Sprintf("it may be too much: children of vfork(2), which have their parents' memory, counted beside these: kcmp(2): %v", refused)
		}
	}
}
