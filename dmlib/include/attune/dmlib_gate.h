/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start gate: how DMLib, when its program starts or has been forked, gets the
 * memory of dmlib_abi.h from the Application Controller. Package dmlib/abi has the
 * messages in Go, generated from here (go generate ./dmlib/abi).
 */
#ifndef ATTUNE_DMLIB_GATE_H
#define ATTUNE_DMLIB_GATE_H

#include <stdint.h>

/* clang-format off */

/* SOCK_SEQPACKET over the Unix socket named by ATTUNE_SOCKET:
 *
 *   hello ->              who I am
 *   <- welcome + memfd    SCM_RIGHTS, or a refusal without one
 *   ready ->              mapped, header's (app) fields filled in
 *   <- go                 points are placed (controls set, GOT slots of this
 *                         waiting process rewritten); run
 *
 * then DMLib closes everything and goes on. All waiting together is bounded by
 * ATTUNE_GATE_MILLISECONDS; when it is over the program runs on: untouched if
 * that was before ready, instrumented if only go is missing. A forked child
 * and a process attached to later do not wait for go. A library that only tests
 * load is built with far longer limits, see the Makefile. */
#ifndef ATTUNE_GATE_MILLISECONDS
#define ATTUNE_GATE_MILLISECONDS 250
#endif

#define ATTUNE_HELLO_FORKED (1u << 0) /* a forked child; nothing waits in main */
#define ATTUNE_HELLO_INJECTED (1u << 1)
#define ATTUNE_HELLO_EARLY (1u << 2)  /* brings its own memory, see below */
#define ATTUNE_HELLO_UNFILTERED (1u << 3) /* EARLY: under no seccomp filter when it did so */

struct attune_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;
    int32_t pid;
    int32_t tid;
    uint32_t attempt; /* counts up when the mapping did not fit (RLIMIT_AS) */
    uint32_t deadline; /* when it runs on without go: CLOCK_MONOTONIC in milliseconds,
                        * the lower 32 bits; 0: not told                           */
};

#define ATTUNE_WELCOME_OK 0u
#define ATTUNE_WELCOME_REFUSED 1u

struct attune_welcome {
    uint64_t magic;
    uint32_t version; /* of the memory, where DMLib reads it; earlier ones read it here */
    uint32_t status;
    uint64_t total_size;
    uint64_t reserved;
};

#define ATTUNE_READY_OK 0u
#define ATTUNE_READY_NO_MAP 1u  /* mmap refused: error holds errno */
#define ATTUNE_READY_BAD_ABI 2u

struct attune_ready {
    uint64_t magic;
    uint32_t status;
    int32_t error;
};

struct attune_go {
    uint64_t magic;
    uint32_t reserved[2]; /* 0 */
};

/* Where nobody listens at the gate yet, or nothing has to be in place before
 * main, a process need not wait there. Beside the gate's socket is then a file
 * with headers of memory files, of falling size, as the controller would write
 * them, and a socket that somebody listens at:
 *
 *   hello + memfd + pidfd ->    SCM_RIGHTS; EARLY is set
 *
 * The memory has been made from the first header that fits, is sealed and
 * mapped, and the header's (app) fields are filled in. No answer is waited for:
 * the controller takes it over when it gets to it. While points are to be in place
 * before main, there is no such file, and new processes come to the gate. So do
 * those that are under seccomp filters, if it is open, and forked children. */
#define ATTUNE_EARLY_HEADERS ".headers"
#define ATTUNE_EARLY_SOCKET ".early"
#define ATTUNE_MEMORY_NAME "attune-dm"

#endif
