// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// ownAllocator ends the program if it is given a block that it has not given out.
const ownAllocator = `#include <stddef.h>
#include <string.h>
static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t size) {
    size_t whole = 16 + (size + 15) / 16 * 16, at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
    if (at + whole > sizeof(arena))
        return NULL;
    memcpy(arena + at, &size, sizeof(size));
    return arena + at + 16;
}
void free(void *block) {
    if (block != NULL && ((char *)block < arena || (char *)block >= arena + sizeof(arena)))
        __builtin_trap();
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    size_t old = 0;
    if (block != NULL)
        memcpy(&old, (char *)block - 16, sizeof(old));
    if (moved != NULL && block != NULL)
        memcpy(moved, block, old < size ? old : size);
    free(block);
    return moved;
}`

const (
	saying   = "#include <unistd.h>\nvoid say(void) { (void)!write(-1, \"\", 0); }"
	swapping = "static void *volatile block;\nvoid swap(void) { free(block); block = malloc(100); }"
)

// TestNamesakesKeepTheirCalls: calls of a function that is not the one which the hook
// goes on to stay where they are, also if the loader binds them later.
func TestNamesakesKeepTheirCalls(t *testing.T) {
	for _, when := range []string{"bound", "later"} {
		t.Run(when, func(t *testing.T) {
			b := newBench(t)
			say, swap := buildLibrary(t, "say", saying), buildLibrary(t, "swap", swapping)
			cmd := exec.Command(targets.Program(t, "namesakes"), say, swap, when)
			cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+buildLibrary(t, "own", ownAllocator))
			h := targets.StartCommand(t, cmd)
			result := b.inject(t, h.PID)
			defer free(t, result)
			led := func(slots []shm.Slot, name string) (n int) {
				image := imageOf(t, h.PID, name)
				for _, s := range slots {
					if image.Has(s.Address) {
						n++
					}
				}
				return n
			}
			for _, name := range []string{"libsay.so", "libswap.so"} {
				if n := led(result.Slots, name); n != 0 {
					t.Errorf("%d slots of %s lead to hooks", n, name)
				}
			}
			h.Right(t)
			if got := h.Ask(t, "load "+buildLibrary(t, "late", swapping)); got != "right" {
				t.Fatal(got)
			}
			images, err := objfile.Images(h.PID)
			if err != nil {
				t.Fatal(err)
			}
			later, err := Extend(t.Context(), mustOpen(t, h.PID), result.Memory, images, result.Slots)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]int{"libsay.so": 0, "libswap.so": 0, "liblate.so": 2} {
				if n := led(later, name); n != want {
					t.Errorf("%d slots of %s lead to hooks, want %d", n, name, want)
				}
			}
			h.Right(t)
			h.Finish(t)
		})
	}
}
