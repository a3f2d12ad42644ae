// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// Tree is what a process and its descendants take.
type Tree struct {
	// CPU is their CPU time so far, with that of threads that have ended, and of
	// descendants that have ended and were waited for.
	CPU time.Duration
	// MB is their memory, with what processes share divided among them.
	MB float64
	// Processes is how many there are.
	Processes int
}

// TreeOf looks at a process and its descendants, but for those of the given names and
// theirs. An error says that the process has ended, or what could not be read.
func TreeOf(pid int, without ...string) (t Tree, err error) {
	pids, err := procid.List()
	if err != nil {
		return t, err
	}
	var next []procid.Stat
	children := make(map[int][]procid.Stat)
	for _, one := range pids {
		stat, err := procid.ReadStat(one)
		switch {
		case err != nil: // it has ended
		case one == pid:
			next = append(next, stat)
		case !slices.Contains(without, stat.Comm):
			children[stat.ParentPID] = append(children[stat.ParentPID], stat)
		}
	}
	for ; len(next) > 0; next = next[1:] {
		if err := t.add(next[0]); err != nil {
			return t, err
		}
		next = append(next, children[next[0].PID]...)
	}
	if t.Processes == 0 {
		return t, fmt.Errorf("process %d has ended", pid)
	}
	return t, nil
}

// add adds a process. One that has just ended counts with its parent, when that waits.
func (t *Tree) add(stat procid.Stat) error {
	cpu, notTimed := procid.CPUTime(stat.PID)
	// Its part of what it shares.
	memory, notWeighed := procid.ReadField(procid.Path(stat.PID, "smaps_rollup"), "Pss")
	if err := errors.Join(notTimed, notWeighed); err != nil {
		if now, gone := procid.ReadStat(stat.PID); gone == nil && !now.Zombie() {
			return fmt.Errorf("process %d: %w", stat.PID, err)
		}
		return nil
	}
	t.CPU += cpu + time.Duration(stat.ReapedUserTicks+stat.ReapedSystemTicks)*procid.Tick
	t.MB += float64(memory) / 1e6
	t.Processes++
	return nil
}
