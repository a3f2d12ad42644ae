// SPDX-License-Identifier: Apache-2.0

// Package digest is what an account says to a person: bars of what was used of what could
// be had, what the time went into, what bounded it, and what to ask for next time. A number
// that is not known makes no bar and no sentence. Its functions are safe for concurrent use.
package digest

import (
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/quantity"
)

// Bar is a part of something.
type Bar struct {
	Name string
	// Share is 0 for nothing, 1 for all, and may be more.
	Share float64
	// Text says what of what.
	Text string
}

// barWidth is in columns.
const barWidth = 20

// String draws the bar in a line of text, with its percentage.
func (b Bar) String() string {
	full := min(barWidth, max(0, int(b.Share*barWidth+0.5)))
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + " " + fmt.Sprintf("%5s", b.Percent())
}

// Percent is the share in whole percents.
func (b Bar) Percent() string {
	if b.Share > 0 && b.Share < 0.005 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*b.Share)
}

// About is what stands before a number that is not exact.
func About(a *account.Account, field string) string {
	switch a.Accuracy[field] {
	case account.Sampled:
		return "about "
	case account.Bound:
		return "at least "
	}
	return ""
}

// Used are the bars of what was used of what could be had: CPU, memory, and time where some
// was asked for.
func Used(a *account.Account) (bars []Bar) {
	v := a.Available
	if a.CoresAverage != nil && v.Cores != nil {
		whose := of(a, "cores")
		if len(a.Nodes) > 1 {
			whose = ofOn(a, "cores", fmt.Sprintf("%d nodes", len(a.Nodes)))
		}
		text := fmt.Sprintf("of %s %s: %s%.2f on average", coresText(*v.Cores), whose, About(a, "cores_average"), *a.CoresAverage)
		if a.CoresPeak != nil {
			text += fmt.Sprintf(", peak %s%.1f", About(a, "cores_peak"), *a.CoresPeak)
		}
		bars = append(bars, Bar{"CPU", *a.CoresAverage / *v.Cores, text})
	}
	if n, measured := fullest(a); n != nil {
		among := fmt.Sprintf("the fullest of %d nodes", measured)
		if measured == 1 {
			among = "the only node that was measured"
		}
		bars = append(bars, Bar{"memory", float64(*n.Resident) / float64(*n.Memory), fmt.Sprintf("of %s %s: peak %s%s, %s",
			bytes(*n.Memory), ofOn(a, "memory_bytes", n.Name), About(a, "nodes.resident_peak_bytes"), bytes(*n.Resident), among)})
	} else if peak, field := memory(a); peak != nil && v.Memory != nil && len(a.Nodes) == 0 {
		bars = append(bars, Bar{"memory", float64(*peak) / float64(*v.Memory),
			fmt.Sprintf("of %s %s: peak %s%s", bytes(*v.Memory), of(a, "memory_bytes"), About(a, field), bytes(*peak))})
	}
	if v.WallSeconds != nil {
		bars = append(bars, Bar{"time", a.WallSeconds / *v.WallSeconds,
			fmt.Sprintf("of %s %s: %s", quantity.Seconds(*v.WallSeconds), of(a, "wall_seconds"), quantity.Seconds(a.WallSeconds))})
	}
	return bars
}

// Took is what was used where it is not known what could be had; empty where it is.
func Took(a *account.Account) string {
	if a.CPUSeconds == nil || a.CoresAverage == nil || a.Available.Cores != nil {
		return ""
	}
	text := fmt.Sprintf("%s%s CPU time, %.2f cores on average", About(a, "cpu_seconds"), quantity.Seconds(*a.CPUSeconds), *a.CoresAverage)
	if peak, field := memory(a); peak != nil {
		text += fmt.Sprintf("; peak memory %s%s", About(a, field), bytes(*peak))
	}
	if a.Processes.Total != nil {
		text += fmt.Sprintf("; processes: %d", *a.Processes.Total)
	}
	return text
}

// memory is the peak that a memory limit is about: of all processes, shared pages once
// where that is known.
func memory(a *account.Account) (peak *uint64, field string) {
	if a.Memory.Proportional != nil {
		return a.Memory.Proportional, "memory.proportional_peak_bytes"
	}
	return a.Memory.Resident, "memory.resident_peak_bytes"
}

// fullest is the node whose memory was used most, of that which could be had there, and how many
// nodes were measured; nil where there are not several, or it is not known what one could have.
func fullest(a *account.Account) (most *account.Node, measured int) {
	share := func(n *account.Node) float64 { return float64(*n.Resident) / float64(*n.Memory) }
	for i := range a.Nodes {
		n := &a.Nodes[i]
		if n.Resident == nil {
			continue
		}
		if n.Memory == nil {
			return nil, 0
		}
		measured++
		if most == nil || share(n) > share(most) {
			most = n
		}
	}
	return most, measured
}

// of says whose it was to give.
func of(a *account.Account, field string) string {
	switch source := a.Sources["available."+field]; source {
	case account.SourceMachine:
		return "of the machine"
	case account.SourceGroup:
		return "of the control group"
	default:
		return strings.ReplaceAll(source, batch.Slurm, "Slurm")
	}
}

// ofOn is of for a part of several nodes, or all.
func ofOn(a *account.Account, field, place string) string {
	if a.Sources["available."+field] == account.SourceMachine {
		return "on " + place
	}
	return of(a, field) + " on " + place
}

func coresText(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return quantity.Number(n) + " cores"
}

func bytes(n uint64) string { return quantity.Bytes(float64(n)) }

// Worst names the process that took most CPU time, and the one that had most memory; empty
// where there was one process, or nothing is known of single ones.
func Worst(a *account.Account) string {
	var cpu, resident *account.Process
	all := true // memory is known of all: else one of the others may have had most
	for i := range a.Tree {
		p := &a.Tree[i]
		if p.CPUSeconds != nil && (cpu == nil || *p.CPUSeconds > *cpu.CPUSeconds) {
			cpu = p
		}
		if all = all && p.Memory.Resident != nil; all && (resident == nil || *p.Memory.Resident > *resident.Memory.Resident) {
			resident = p
		}
	}
	if len(a.Tree) < 2 || cpu == nil || a.Processes.Total == nil || a.CPUSeconds == nil {
		return ""
	}
	text := fmt.Sprintf("process %s, of %d: %s%s of the %s%s CPU time", processText(cpu), *a.Processes.Total, About(a, "tree.cpu_seconds"), quantity.Seconds(*cpu.CPUSeconds), About(a, "cpu_seconds"), quantity.Seconds(*a.CPUSeconds))
	switch {
	case !all:
		return text
	case resident == cpu:
		return text + ", and most memory, " + bytes(*cpu.Memory.Resident)
	}
	return text + fmt.Sprintf("; most memory had %s, %s", processText(resident), bytes(*resident.Memory.Resident))
}

func processText(p *account.Process) string {
	text := fmt.Sprint(p.PID)
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	if p.Node != "" {
		text += " on " + p.Node
	}
	return text
}
