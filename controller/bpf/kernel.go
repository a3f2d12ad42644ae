// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"
	"strconv"
	"time"
)

// ClockTick is the unit of start times in /proc/PID/stat. The kernel fixes
// USER_HZ at 100 on every architecture that Attune knows.
const ClockTick = 10 * time.Millisecond

// MinorBits is the width of a minor number in the kernel's own device numbers.
const MinorBits = 20

// DescriptorPath is a path of an open file for calls that take one.
func DescriptorPath(file *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
}
