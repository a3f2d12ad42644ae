// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSumDoesNotFall: what a process took is in each reading until the kernel is done with it. From Linux 6.16
// on, the kernel takes its memory away between its end and that.
func TestSumDoesNotFall(t *testing.T) {
	program := targets.BuildText(t, "ends_large", `
		#include <string.h>
		#include <sys/mman.h>
		int main(void) {
			size_t bytes = 800000000;
			char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (memory == MAP_FAILED)
				return 1;
			madvise(memory, bytes, MADV_NOHUGEPAGE); /* small pages take longer to be taken away */
			memset(memory, 1, bytes);
			return memory[bytes / 2] != 1;
		}`)
	a, child := mustBegin(t, Options{}, program)
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	var last reading
	patience.Until(t, "the kernel to be done with it", func() bool {
		n, err := a.source.look()
		if err != nil {
			t.Error(err)
			return true
		}
		r := read(n, false)
		if r.partial {
			return false
		}
		if r.taken.cpu < last.taken.cpu {
			t.Errorf("%v of CPU time after %v, %d alive, %d ending", r.taken.cpu, last.taken.cpu, len(n.alive), len(n.ending))
		}
		last = r
		return len(n.alive)+len(n.ending) == 0
	})
	record := a.End(patience.Context(t), nil, child.Wait())
	if *record.CPUSeconds != last.taken.cpu.Seconds() {
		t.Errorf("%v s in the end, %v at the last look", *record.CPUSeconds, last.taken.cpu)
	}
}
