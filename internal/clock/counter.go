// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// CounterSource is the file that names the kernel's clock source.
const CounterSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

var (
	// ErrUneven means that the processor's time-stamp counter is no clock.
	ErrUneven = errors.New("the time-stamp counter does not tick evenly")
	// ErrUntrusted means that the kernel goes by another clock than the time-stamp counter.
	ErrUntrusted = errors.New("the kernel does not trust the time-stamp counter")
)

// CheckCounter says why the time-stamp counters of this machine's processors may be out of
// step, as [JudgeCounter].
func CheckCounter() error {
	// A file that cannot be read is a problem by itself: empty is no counter to trust.
	source, _ := os.ReadFile(CounterSource)
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	return JudgeCounter(string(source), string(cpuinfo))
}

// JudgeCounter judges the time-stamp counter by what [CounterSource] and /proc/cpuinfo say:
// nil, [ErrUneven], [ErrUntrusted] or both.
func JudgeCounter(source, cpuinfo string) error {
	missing := []string{"constant_tsc", "nonstop_tsc"}
	flags := cpuFlags(cpuinfo)
	missing = slices.DeleteFunc(missing, func(want string) bool { return slices.Contains(flags, want) })
	var uneven, untrusted error
	if len(missing) > 0 {
		uneven = fmt.Errorf("%w: the processor lacks %s", ErrUneven, strings.Join(missing, " and "))
	}
	if source = strings.TrimSpace(source); source != "tsc" {
		untrusted = fmt.Errorf("%w: its clock source is %q", ErrUntrusted, source)
	}
	if uneven != nil && untrusted != nil {
		return fmt.Errorf("%w; %w", uneven, untrusted)
	}
	return cmp.Or(uneven, untrusted)
}

// cpuFlags returns the features of the first processor.
func cpuFlags(cpuinfo string) []string {
	for line := range strings.Lines(cpuinfo) {
		if name, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			return strings.Fields(flags)
		}
	}
	return nil
}
