// SPDX-License-Identifier: Apache-2.0

// Package directive writes what to ask a batch system for, ready to paste. Its functions are
// safe for concurrent use.
package directive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Need is what a task needs. An amount that is not known is nil.
type Need struct {
	MemoryBytes *Amount `json:"memory_bytes,omitempty"`
	Cores       *Amount `json:"cores,omitempty"`
	WallSeconds *Amount `json:"wall_seconds,omitempty"`
	DiskBytes   *Amount `json:"disk_bytes,omitempty"`
}

// Amount is what to ask for, with its reason in a sentence.
type Amount struct {
	Value  float64 `json:"value"`
	Reason string  `json:"reason"`
}

// forms write amounts as a batch system wants them, with the reasons as comments.
var forms = map[string]func(name string, n *Need) string{
	"slurm": func(_ string, e *Need) string {
		return lines(e, "# ", "#SBATCH --mem=%dM", "#SBATCH --cpus-per-task=%d", func(s int64) string { return "#SBATCH --time=" + clockTime(s) }, "#SBATCH --tmp=%dM")
	},
	"htcondor": func(_ string, e *Need) string {
		return lines(e, "# ", "request_memory = %d MB", "request_cpus = %d", func(s int64) string { return fmt.Sprintf("allowed_execute_duration = %d", s) }, "request_disk = %d MB")
	},
	"gridengine": gridEngine,
	"nextflow": func(task string, e *Need) string {
		body := lines(e, "// ", "memory = %d.MB", "cpus = %d", func(s int64) string { return fmt.Sprintf("time = %d.s", s) }, "disk = %d.MB")
		name := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(task)
		return "process {\n    withName: '" + name + "' {\n" + indent(body, 8) + "    }\n}\n"
	},
	"snakemake": func(_ string, e *Need) string {
		reasons, rows := comments(e, "# "), ""
		if e.Cores != nil {
			rows = fmt.Sprintf("threads: %.0f\n", e.Cores.Value)
		}
		var resources []string
		if e.MemoryBytes != nil { // megabytes of 10^6
			resources = append(resources, fmt.Sprintf("mem_mb=%d", ceil(e.MemoryBytes.Value, 1e6)))
		}
		if e.DiskBytes != nil {
			resources = append(resources, fmt.Sprintf("disk_mb=%d", ceil(e.DiskBytes.Value, 1e6)))
		}
		if e.WallSeconds != nil { // minutes
			resources = append(resources, fmt.Sprintf("runtime=%d", ceil(e.WallSeconds.Value, 60)))
		}
		if len(resources) > 0 {
			rows += "resources:\n    " + strings.Join(resources, ",\n    ") + "\n"
		}
		return reasons + rows
	},
}

// Systems are the batch systems that Write knows, sorted.
func Systems() []string { return slices.Sorted(maps.Keys(forms)) }

// Write writes the amounts as a batch system wants them, as lines to paste, with the reasons
// as comments. task is the name of the task where the system wants one; it holds no control
// characters. False for a system that is not known.
func Write(system, task string, n Need) (text string, known bool) {
	form, known := forms[system]
	if !known {
		return "", false
	}
	return form(task, &n), true
}

// lines writes what is known of memory (MiB), cores, time (seconds) and disk (MiB), a line
// each, after the reasons.
func lines(e *Need, comment, memory, cores string, wall func(int64) string, disk string) string {
	const mib = 1 << 20
	out := comments(e, comment)
	if e.MemoryBytes != nil {
		out += fmt.Sprintf(memory+"\n", ceil(e.MemoryBytes.Value, mib))
	}
	if e.Cores != nil {
		out += fmt.Sprintf(cores+"\n", int64(e.Cores.Value))
	}
	if e.WallSeconds != nil {
		out += wall(int64(e.WallSeconds.Value)) + "\n"
	}
	if e.DiskBytes != nil {
		out += fmt.Sprintf(disk+"\n", ceil(e.DiskBytes.Value, mib))
	}
	return out
}

// gridEngine: what is asked for is for each slot there, and how slots of one node are
// called is the site's choice.
func gridEngine(_ string, e *Need) string {
	perSlot := *e
	cores := 1.0
	if e.Cores != nil {
		cores = e.Cores.Value
	}
	if e.MemoryBytes != nil {
		perSlot.MemoryBytes = &Amount{Value: e.MemoryBytes.Value / cores, Reason: e.MemoryBytes.Reason + "; for each of the slots"}
	}
	perSlot.DiskBytes = nil // no name for it is the same at two sites
	return lines(&perSlot, "# ", "#$ -l h_vmem=%dM", "#$ -pe smp %d", func(s int64) string { return fmt.Sprintf("#$ -l h_rt=%d", s) }, "")
}

// comments are the reasons.
func comments(e *Need, mark string) (out string) {
	for _, a := range []struct {
		name string
		*Amount
	}{{"memory", e.MemoryBytes}, {"cores", e.Cores}, {"time", e.WallSeconds}, {"disk", e.DiskBytes}} {
		if a.Amount != nil {
			out += mark + a.name + ": " + a.Reason + "\n"
		}
	}
	return out
}

// ceil is how many units there are in an amount, the last one begun.
func ceil(amount, unit float64) int64 {
	n := int64(amount / unit)
	if float64(n)*unit < amount {
		n++
	}
	return n
}

// clockTime is Slurm's [days-]hours:minutes:seconds.
func clockTime(seconds int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if days := seconds / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

func indent(text string, by int) string {
	space := strings.Repeat(" ", by)
	return space + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+space) + "\n"
}
