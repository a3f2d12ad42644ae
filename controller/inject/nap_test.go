// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
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

// calling does hardly anything but system calls that do not block, and counts
// those that answer what they should not.
const calling = `
#include <stdio.h>
#include <sys/random.h>

static char bytes[1 << 16];

int main(void) {
    puts("ready");
    fflush(stdout);
    for (;;)
        if (getrandom(bytes, sizeof(bytes), 0) <= 0)
            return 1;
}
`

// Code that takes no lock may be executed behind a system call, and the program
// sees the call's own result.
func TestCalling(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "calling.c", calling, "-O1"))
	process := mustOpen(t, target.PID)
	for i := range uint64(50) {
		if value, _, err := Execute(t.Context(), process, constant(i), patiently(ExecuteOptions{Anywhere: true})); err != nil || value != i {
			t.Fatalf("time %d: %d, %v", i, value, err)
		}
	}
	if !process.Alive() {
		t.Error("a call has failed")
	}
}

// A program of one thread that sleeps most of the time can be entered although
// its stack looks as if it were in the allocator.
func TestNapping(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "napping.c", napping, "-O1"))
	process := mustOpen(t, target.PID)
	for i := range uint64(10) {
		if value, _, err := Execute(t.Context(), process, constant(i), patiently(ExecuteOptions{})); err != nil || value != i {
			t.Fatalf("time %d: %d, %v", i, value, err)
		}
	}
}
