// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"fmt"
	"math"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/directive"
	"github.com/attune-hpc/attune/internal/quantity"
)

const (
	// vain is which part of what was asked for has to be unused to speak of it.
	vain = 0.5
	// reserve is what a task is given beyond what it took.
	reserve = 1.25
	// leastMemory and leastTime are the least that is recommended.
	leastMemory, leastTime = 100 << 20, 600
	// mostStarved is how much of the time may have gone into waiting for a CPU where fewer
	// cores are recommended.
	mostStarved = 0.05
)

// Next says what to ask the batch system for where much was asked for in vain, for a task
// that is like this one. False where that is not so, where the command failed, and for a job
// of several tasks or nodes, of which others may have needed it.
func Next(a *account.Account) (need directive.Need, vainly bool) {
	v := a.Available
	if v.System == "" || v.Part || a.Exit.Code == nil || *a.Exit.Code != 0 {
		return need, false
	}
	asked := func(field string) bool { return strings.HasPrefix(a.Sources["available."+field], "asked") }
	if peak, _ := memory(a); peak != nil && v.Memory != nil && asked("memory_bytes") {
		ask := math.Max(reserve*float64(*peak), leastMemory)
		if ask < vain*float64(*v.Memory) {
			need.MemoryBytes = &directive.Amount{Value: ask, Reason: fmt.Sprintf("a quarter more than the %s that it had at most of %s", bytes(*peak), bytes(*v.Memory))}
		}
	}
	if a.CoresPeak != nil && v.Cores != nil && asked("cores") && !starved(a) {
		ask := math.Max(1, math.Ceil(*a.CoresPeak-0.05))
		if ask <= vain**v.Cores {
			need.Cores = &directive.Amount{Value: ask, Reason: fmt.Sprintf("it never used more than %.1f of %s", *a.CoresPeak, quantity.Number(*v.Cores))}
		}
	}
	if v.WallSeconds != nil && asked("wall_seconds") {
		ask := math.Max(60*math.Ceil(reserve*a.WallSeconds/60), leastTime)
		if ask < vain**v.WallSeconds {
			need.WallSeconds = &directive.Amount{Value: ask, Reason: fmt.Sprintf("it took %s of %s", quantity.Seconds(a.WallSeconds), quantity.Seconds(*v.WallSeconds))}
		}
	}
	return need, need != directive.Need{}
}

// starved says whether the command would have used more CPU time if it had got more.
func starved(a *account.Account) bool {
	return a.Time.CPU == nil || *a.Time.CPU > mostStarved*a.WallSeconds
}

// Directive is Next as lines to paste; where the batch system is one that nobody here knows
// the form of, nothing.
func Directive(a *account.Account) []string {
	need, vainly := Next(a)
	if !vainly {
		return nil
	}
	text, known := directive.Write(a.Available.System, "", need)
	if !known {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
