// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"
	"strconv"
)

// MinorBits is the width of a minor number in the kernel's own device numbers.
const MinorBits = 20

// DescriptorPath is a path of an open file for calls that take one.
func DescriptorPath(file *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
}
