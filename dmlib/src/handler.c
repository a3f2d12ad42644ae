/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the thread may be in a signal handler. What a handler interrupts may hold
 * any lock, or be in the middle of malloc or of the dynamic loader, though the handler
 * itself came to a hook of a function that handlers may call.
 *
 * The kernel lays a frame on the stack under a handler: where the handler returns to,
 * flags of which there are four, an empty link, and the registers of what it
 * interrupted, with the only code segment of 64 bits and with flags that are always
 * set in a program. Something like that by chance is no harm, nor a frame that an
 * earlier handler left in a buffer that nobody has written: the thread is then taken to
 * be in a handler, and the call is made elsewhere.
 */
#include "dmlib.h"

/* Of the stack; what lies deeper is not searched. */
#define MOST_SEARCHED (1u << 20)

struct signal_frame {
    uint64_t returns_to;
    uint64_t flags;
    uint64_t link;
    uint64_t stack[3];
    uint64_t general[16];
    uint64_t instruction;
    uint64_t processor_flags;
    uint16_t code_segment;
};

#define MOST_FLAGS 0xfu
#define PROCESSOR_FLAGS 0x202u /* reserved; interrupts are on */
#define CODE_SEGMENT 0x33u

/* It reads what lies between the variables of other functions. */
#define ANYWHERE __attribute__((no_sanitize("address", "undefined")))

ANYWHERE static bool is_frame(const struct signal_frame *at) {
    return at->flags <= MOST_FLAGS && at->link == 0 && at->returns_to != 0 &&
           at->instruction != 0 && at->code_segment == CODE_SEGMENT &&
           (at->processor_flags & PROCESSOR_FLAGS) == PROCESSOR_FLAGS;
}

/* Weak, as all that only glibc has: LD_PRELOAD reaches programs with another C library, whose
 * loader ends the program where a name is not found. There DMLib is inert (dm_live_prepare). */
extern void *__libc_stack_end __attribute__((weak));

/* Where the stack ends that a thread is on at `here`; 0: not known. Above the stack of
 * any thread but the first lies what the thread register leads to. */
static uintptr_t stack_end(uintptr_t here) {
    uintptr_t block = (uintptr_t)__builtin_thread_pointer();
    uintptr_t first = &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
    uintptr_t end = here < block && block - here < MOST_SEARCHED ? block : first;
    return here < end && end - here < MOST_SEARCHED ? end : 0;
}

/* Whether a search would come to the frame again that the last one found, unless it ends
 * before that with the same answer: a main loop inside a handler comes by hooks all the
 * time. Nothing that looks like a frame is left behind on the stack. */
static bool still_in(uintptr_t here, uintptr_t end) {
    struct signal_frame frame;
    uintptr_t at = dm_thread.handler_frame;
    if (at < here || at + sizeof(frame) > end)
        return false;
    bool found = dm_memory_copy(&frame, at, sizeof(frame)) == sizeof(frame) && is_frame(&frame);
    frame.code_segment = 0;
    dm_compiler_barrier();
    return found;
}

/* Page by page: a stack of a handler's own may end before that of the thread begins. */
ANYWHERE static bool search(uintptr_t at, uintptr_t end) {
    uintptr_t readable = at;
    char probe;
    for (; at + sizeof(struct signal_frame) <= end; at += sizeof(uint64_t)) {
        for (; readable < at + sizeof(struct signal_frame); readable += DM_PAGE_SIZE) {
            readable &= ~(uintptr_t)(DM_PAGE_SIZE - 1);
            if (dm_memory_copy(&probe, readable, 1) != 1)
                return true;
        }
        if (is_frame((const struct signal_frame *)at)) {
            dm_thread.handler_frame = at;
            return true;
        }
    }
    return false;
}

bool dm_in_handler(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)15;
    uintptr_t end = stack_end(here);
    return end == 0 || still_in(here, end) || search(here, end);
}
