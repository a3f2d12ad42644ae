// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ClockSourceError says why times from the time-stamp counter may be wrong on
// this machine.
type ClockSourceError struct {
	// Source is the kernel's clock source, empty if it could not be read.
	Source string
	// Missing lists the processor features that are missing of constant_tsc
	// and nonstop_tsc.
	Missing []string
}

// Error names the consequence.
func (e *ClockSourceError) Error() string {
	var why []string
	if e.Source != "tsc" {
		why = append(why, fmt.Sprintf("the kernel's clock source is %q", e.Source))
	}
	if len(e.Missing) > 0 {
		why = append(why, "the processor lacks "+strings.Join(e.Missing, " and "))
	}
	return "time-stamp counter not trusted: " + strings.Join(why, ", ") +
		"; times of different threads may be out of step"
}

// checkSource reads what the kernel thinks of the counter.
func checkSource(root string) error {
	// A file that cannot be read is a problem by itself: its content is then
	// empty, and empty is not "tsc".
	source, _ := os.ReadFile(filepath.Join(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"))
	cpuinfo, _ := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	return judgeSource(source, cpuinfo)
}

// judgeSource is checkSource without the reading.
func judgeSource(source, cpuinfo []byte) error {
	e := ClockSourceError{Source: string(bytes.TrimSpace(source))}
	flags := cpuFlags(cpuinfo)
	for _, want := range []string{"constant_tsc", "nonstop_tsc"} {
		if !slices.Contains(flags, want) {
			e.Missing = append(e.Missing, want)
		}
	}
	if e.Source == "tsc" && len(e.Missing) == 0 {
		return nil
	}
	return &e
}

// cpuFlags returns the features of the first processor.
func cpuFlags(cpuinfo []byte) []string {
	for line := range bytes.Lines(cpuinfo) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if ok && string(bytes.TrimSpace(key)) == "flags" {
			return strings.Fields(string(value))
		}
	}
	return nil
}
