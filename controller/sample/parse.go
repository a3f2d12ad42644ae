// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"

	"github.com/attune-hpc/attune/internal/cpulist"
)

// errMalformed says that a file does not look as the kernel writes it.
var errMalformed = errors.New("malformed /proc file")

// number cuts a decimal number off the front, blanks before it included.
func number(data []byte) (value uint64, rest []byte, ok bool) {
	data = bytes.TrimLeft(data, " \t")
	for len(data) > 0 && data[0] >= '0' && data[0] <= '9' {
		next := value*10 + uint64(data[0]-'0')
		if value > (1<<64-1)/10 || next < value*10 {
			return 0, nil, false
		}
		value, data, ok = next, data[1:], true
	}
	return value, data, ok
}

// status is what is taken from a status file.
type status struct {
	voluntary, involuntary uint64
	cpus                   cpuMask
	anonymous              anonymous
}

// anonymous is the anonymous resident memory of a process. A thread that has
// ended and one of the kernel have none.
type anonymous struct {
	bytes uint64
	known bool
}

// parseStatus parses a status file into s, whose mask is used again.
func parseStatus(data []byte, s *status) error {
	var voluntary, involuntary, cpus bool
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var ok bool
		switch string(name) {
		case "voluntary_ctxt_switches":
			s.voluntary, _, ok = number(value)
			voluntary = true
		case "nonvoluntary_ctxt_switches":
			s.involuntary, _, ok = number(value)
			involuntary = true
		case "Cpus_allowed":
			s.cpus, ok = parseMask(s.cpus[:0], bytes.TrimSpace(value))
			cpus = true
		case "RssAnon":
			var kilobytes uint64
			kilobytes, _, ok = number(value)
			s.anonymous = anonymous{kilobytes * 1024, true} // not in every status
		default:
			continue
		}
		if !ok {
			return fmt.Errorf("%w: status line %q", errMalformed, line)
		}
	}
	if !voluntary || !involuntary || !cpus {
		return fmt.Errorf("%w: status without switches or allowed CPUs", errMalformed)
	}
	return nil
}

// cpuMask is a set of CPUs in groups of 32, the highest first, as the kernel
// writes it.
type cpuMask []uint32

// maxMaskGroups allows for more CPUs than any kernel is built for.
const maxMaskGroups = 512

// parseMask parses "ff,ffffffff".
func parseMask(into cpuMask, text []byte) (cpuMask, bool) {
	for group := range bytes.SplitSeq(text, []byte(",")) {
		if len(group) == 0 || len(group) > 8 || len(into) == maxMaskGroups {
			return into, false
		}
		var bits uint32
		for _, c := range group {
			digit := bytes.IndexByte([]byte("0123456789abcdef"), c)
			if digit < 0 {
				return into, false
			}
			bits = bits<<4 | uint32(digit)
		}
		into = append(into, bits)
	}
	return into, true
}

// count is how many CPUs are in the mask.
func (m cpuMask) count() (n int) {
	for _, group := range m {
		n += bits.OnesCount32(group)
	}
	return n
}

// list writes the mask as Cpus_allowed_list has it: "0-3,8".
func (m cpuMask) list() string {
	var cpus []int
	for cpu := range 32 * len(m) {
		if m.has(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpulist.Format(cpus)
}

// has says whether a CPU, less than 32 times the number of groups, is in it.
func (m cpuMask) has(cpu int) bool { return m[len(m)-1-cpu/32]&(1<<(cpu%32)) != 0 }
