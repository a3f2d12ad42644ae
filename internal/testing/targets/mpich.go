// SPDX-License-Identifier: Apache-2.0

package targets

import "strconv"

// MPICH is the beginning of a command that starts ranks with Debian's MPICH. UCX, by which it
// sends, writes a jump over the first bytes of libc's mmap when it starts, while its
// other thread may be at them: on a crowded machine it dies of that now and then, with
// Attune and without. It is told not to.
func MPICH(ranks int) []string {
	return []string{"mpirun.mpich", "-genv", "UCX_MEM_EVENTS", "n", "-n", strconv.Itoa(ranks)}
}
