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

// Text is a text of the kernel's, up to its NUL byte. It need not be UTF-8.
func Text(chars []int8) string {
	bytes := make([]byte, 0, len(chars))
	for _, c := range chars {
		if c == 0 {
			break
		}
		bytes = append(bytes, byte(c))
	}
	return string(bytes)
}
