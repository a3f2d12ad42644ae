// SPDX-License-Identifier: Apache-2.0

package objfile

import "unsafe"

// addressOf returns where a mapping lies in our own address space.
func addressOf(page []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(page)))) }
