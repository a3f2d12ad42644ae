// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

// napping allocates, and then sleeps above what the allocator has left on the
// stack.
const napping = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) void allocate(void) {
    void *volatile blocks[32];
    for (int i = 0; i < 32; i++)
        blocks[i] = malloc(3000 + 500 * i);
    for (int i = 0; i < 32; i++)
        free(blocks[i]);
}

static __attribute__((noinline)) void nap(void) {
    volatile char hole[768];
    hole[0] = 0;
    usleep(1000 + hole[0]);
}

int main(void) {
    puts("ready");
    fflush(stdout);
    for (;;) {
        allocate();
        nap();
    }
}
`

// A program of one thread that sleeps most of the time can be entered although
// its stack looks as if it were in the allocator.
func TestNapping(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "napping.c", napping, "-O1"))
	process := mustOpen(t, target.PID)
	for i := range uint64(10) {
		if value, _, err := Execute(t.Context(), process, constant(i), ExecuteOptions{}); err != nil || value != i {
			t.Fatalf("time %d: %d, %v", i, value, err)
		}
	}
}
