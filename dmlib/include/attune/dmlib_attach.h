/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How DMLib comes into a running program: what the program is made to execute,
 * and what that is told and answers. Package dmlib/abi has it in Go, generated from
 * here (go generate ./dmlib/abi).
 */
#ifndef ATTUNE_DMLIB_ATTACH_H
#define ATTUNE_DMLIB_ATTACH_H

#include <stdint.h>

#include "attune/dmlib_abi.h"

/* clang-format off */

/* A library that was brought into a running program by dlopen has no
 * ATTUNE_SOCKET to find: the controller has a thread of the program call
 *
 *   int attune_dm_attach(struct attune_attach *request);
 *
 * which maps a memory file that the program has open already, and leads GOT
 * slots of the objects that are loaded already to its hooks. It returns 0 or an
 * errno value, and can be called again after a detach. */
#define ATTUNE_ATTACH_VERSION 4u
#define ATTUNE_ATTACH_SOCKET 108u
#define ATTUNE_ATTACH_NAME 24u

#define ATTUNE_ATTACH_TAKE_OVER (1u << 0) /* the controller that the process is
                                           * under is dead                    */

/* What makes a word a GOT slot for a function: the relocation of the object. The
 * print is FNV-1a (64 bits) over the relocation, the symbol that it names, and
 * that one's name without its zero byte, at most ATTUNE_ORIGIN_NAME bytes. */
#define ATTUNE_ORIGIN_NAME 64u

struct attune_origin {
    uint64_t print;      /* (AC)                                               */
    uint64_t relocation; /* (AC) address of the Elf64_Rela; 0: not known       */
    int32_t symbol;      /* (AC) where the Elf64_Sym lies, from there, bytes   */
    int32_t name;        /* (AC) and its name                                  */
};

/* A slot is led to a hook only from the function that the hook goes on to, or where the
 * loader has not bound it yet and no other object has a function of that name. EBUSY: it
 * holds something else, or the loader has not relocated it. */
struct attune_attach_slot {
    char name[ATTUNE_ATTACH_NAME]; /* (AC) of the function; ends with a zero byte */
    uint64_t address; /* (AC) of the GOT slot                                  */
    uint64_t hook;    /* (AC) offset of the hook from DMLib's load address     */
    uint32_t relro;   /* (AC) the page is read-only                            */
    int32_t error;    /* (app) 0: written, else an errno value                 */
    uint64_t old;     /* (app) what the slot held                              */
    struct attune_origin origin; /* (AC) ESTALE if it is no such slot any more */
    uint64_t unbound; /* (AC) what it holds until the loader has bound it; 0:
                       * others have a function of that name                   */
};

/* What the hooks go on to once it is known: the library has an array of these
 * (attune_dm_behind), ATTUNE_BEHIND_COUNT. */
#define ATTUNE_BEHIND_COUNT 24u

struct attune_behind {
    uint64_t function;             /* (app) its address            */
    char name[ATTUNE_ATTACH_NAME]; /* (app) ends with a zero byte  */
};

/* A function that a hook stands before; what is not named here is looked up. */
struct attune_attach_real {
    char name[ATTUNE_ATTACH_NAME]; /* (AC) ends with a zero byte */
    uint64_t address;              /* (AC)                       */
};

struct attune_attach {
    uint64_t magic;       /* (AC) ATTUNE_ABI_MAGIC                             */
    uint32_t version;     /* (AC) ATTUNE_ATTACH_VERSION                        */
    uint32_t flags;       /* (AC) ATTUNE_ATTACH_*                              */
    uint32_t slot_count;  /* (AC) struct attune_attach_slot follow             */
    uint32_t real_count;  /* (AC) behind them: struct attune_attach_real       */
    uint64_t memory_size; /* (AC) of the memory file, bytes                    */
    int32_t memory;       /* descriptor of the memory file, closed by who made it */
    char socket[ATTUNE_ATTACH_SOCKET]; /* (AC) gate for forked children; ends
                                        * with a zero byte, "": none           */
};

/* What the program executes to come there (dmlib/entry), or to make one call
 * that the controller asks for. The mapping begins with the code; this structure
 * follows, then request, signal frame and stack. */
#define ATTUNE_ENTRY_FILES_MADE 1u /* state: the files wait to be filled */
#define ATTUNE_ENTRY_DONE 2u       /* state: the answer is complete      */

#define ATTUNE_ENTRY_GO_FILLED 1u /* go */
#define ATTUNE_ENTRY_GO_READ 2u   /* go */

#define ATTUNE_ENTRY_FILES 1u  /* step: a descriptor table and files of its own */
#define ATTUNE_ENTRY_WAIT 2u   /* step: the controller said nothing             */
#define ATTUNE_ENTRY_LOAD 3u   /* step: dlopen                                  */
#define ATTUNE_ENTRY_ATTACH 4u /* step: attune_dm_attach                        */
#define ATTUNE_ENTRY_THREAD 5u /* step: pthread_create                          */

struct attune_entry {
    uint64_t base;   /* (AC) of the mapping                                    */
    uint64_t size;   /* (AC) of the mapping, bytes                             */
    uint64_t frame;  /* (AC) what rt_sigreturn(2) restores the thread from     */
    uint64_t unmap;  /* (AC) munmap                                            */
    uint64_t create; /* (AC) pthread_create; 0: in the thread itself           */
    uint64_t attributes;   /* (AC) pthread_attr_init           */
    uint64_t set_detached; /* (AC) pthread_attr_setdetachstate */
    uint64_t set_stack;    /* (AC) pthread_attr_setstacksize   */
    uint64_t open;    /* (AC) dlopen                                           */
    uint64_t symbol;  /* (AC) dlsym                                            */
    uint64_t message; /* (AC) dlerror; 0: there is none                        */
    uint64_t attach;  /* (AC) attune_dm_attach, where the library is loaded    */
    uint64_t path;    /* (AC) of the library                                   */
    uint64_t request; /* (AC) struct attune_attach                             */
    uint64_t code;    /* (AC) uint64_t code(void) to call, and nothing else; 0: none */
    uint64_t value;   /* (app) what it returned                                */
    uint32_t mode;         /* (AC) to be added to dlopen's RTLD_NOW            */
    uint32_t from_memory;  /* (AC) the library comes in a file without a name  */
    uint32_t milliseconds; /* (AC) to wait for the controller, each time       */
    uint32_t go;           /* (AC) ATTUNE_ENTRY_GO_*                           */
    uint32_t state;  /* (app) ATTUNE_ENTRY_*                                   */
    uint32_t step;   /* (app) where it ended; 0: all is well                   */
    int32_t error;   /* (app) errno value of the step                          */
    int32_t thread;  /* (app) that does the work, as the process numbers it    */
    int32_t memory;  /* (app) descriptor of the memory file                    */
    int32_t library; /* (app) descriptor of the library's                      */
    uint64_t text;   /* (app) what dlerror said                                */
};

#endif
