// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// turning allocates, and then computes for ever without a call, in a frame with a hole.
// With an argument it does so while it allocates.
const turning = `
#include <stdio.h>
#include <stdlib.h>

void (*while_allocating)(void);
volatile unsigned long turns;

/* Does not return, and keeps what was on the stack before. */
__attribute__((noinline)) void turn(void) {
    volatile char hole[500];
    puts("ready");
    fflush(stdout);
    hole[0] = 1;
    for (;;)
        turns += hole[0];
}

/* Leaves the addresses of the allocator's frames on the stack. */
__attribute__((noinline)) static void allocate(void) {
    void *volatile blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = malloc(1 << 16 << i);
    for (int i = 0; i < 8; i++)
        free(blocks[i]);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        while_allocating = turn;
    allocate();
    turn();
    return 0;
}
`

// allocating is an allocator that calls back.
const allocating = `
#include <stddef.h>
void *__libc_malloc(size_t size);
extern void (*while_allocating)(void);
void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (while_allocating && size > 1 << 15)
        while_allocating();
    return block;
}
`

// TestStaleAddresses: where the allocator's frames have been is no reason against a
// thread that has left them.
func TestStaleAddresses(t *testing.T) {
	b := newBench(t)
	target := targets.Start(t, targets.BuildText(t, "turning", turning))
	free(t, b.inject(t, target.PID))
}

// TestFramesOfAnAllocator: a thread that the allocator has called is not borrowed.
func TestFramesOfAnAllocator(t *testing.T) {
	b := newBench(t)
	b.options.patience = 200 * time.Millisecond
	cmd := exec.Command(targets.BuildText(t, "turning", turning, "-rdynamic"), "allocating")
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+buildLibrary(t, "allocating", allocating))
	target := targets.StartCommand(t, cmd)
	if _, err := Inject(t.Context(), mustOpen(t, target.PID), b.options); !errors.Is(err, ErrNoSafePoint) {
		t.Errorf("error %v, want %v", err, ErrNoSafePoint)
	}
}
