// SPDX-License-Identifier: Apache-2.0

// Package malloc is the tunlet against allocator storms: a program that takes
// large blocks from glibc's allocator and gives them back again and again.
// glibc returns such memory to the kernel at once, and the program pays for it
// with page faults, zeroed pages and brk/munmap calls at the next allocation.
// Three mallopt settings make glibc keep the memory.
//
// Nothing in the program is touched before the signals from outside tell of
// memory that is given back and taken again. Then the allocation hooks count
// large blocks, which both confirms the cause and measures the objective. Only
// if the blocks explain the faults are the settings proposed.
//
// model.go is the model and free of state; watch.go follows one process;
// tunlet.go connects them to the Dynamic Tunlet API. No locks: the SDK makes
// one call at a time.
package malloc
