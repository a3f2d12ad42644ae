// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define SYS_read 0
#define SYS_prctl 157
#define PR_SET_NAME 15
#define SYS_rt_sigaction 13
#define SYS_rt_sigprocmask 14
#define SYS_exit_group 231
#define SYS_fcntl 72
#define F_GETFD 1
#define SIG_IGN 1

// attune_entry is where the kernel starts a process that was linked with
// -E attune_entry. Only system calls and stores; the stack pointer and DX (the
// two things that the ABI hands over) reach the runtime as they came. SYSCALL
// destroys AX, CX and R11.
TEXT attune_entry(SB), NOSPLIT|NOFRAME, $0
	MOVQ 8(SP), AX            // argv[0]
	TESTQ AX, AX
	JEQ  capture
	MOVQ $0x772d656e75747461, BX // "attune-w"
	CMPQ BX, (AX)
	JNE  capture
	MOVQ $0x007373656e746977, BX // "witness\0"
	CMPQ BX, 7(AX)
	JEQ  witness

capture:
	MOVQ DX, R12

	// rt_sigprocmask(SIG_BLOCK, NULL, &blocked, 8)
	MOVQ $SYS_rt_sigprocmask, AX
	XORQ DI, DI
	XORQ SI, SI
	LEAQ ·blocked(SB), DX
	MOVQ $8, R10
	SYSCALL

	// for fd = 2..0: if fcntl(fd, F_GETFD) < 0 { closed |= 1 << fd }
	MOVQ $2, R13

descriptor:
	MOVQ $SYS_fcntl, AX
	MOVQ R13, DI
	MOVQ $F_GETFD, SI
	XORQ DX, DX
	SYSCALL
	TESTQ AX, AX
	JGE  opened
	MOVQ R13, CX
	MOVQ $1, BX
	SHLQ CX, BX
	ORQ  BX, ·closed(SB)

opened:
	DECQ R13
	JGE  descriptor

	// for sig = 64..1: if its handler is SIG_IGN { ignored |= 1 << (sig-1) }
	MOVQ $64, R13

disposition:
	MOVQ $SYS_rt_sigaction, AX
	MOVQ R13, DI
	XORQ SI, SI
	LEAQ ·action(SB), DX
	MOVQ $8, R10
	SYSCALL
	TESTQ AX, AX
	JLT  next
	CMPQ ·action(SB), $SIG_IGN
	JNE  next
	LEAQ -1(R13), CX
	MOVQ $1, BX
	SHLQ CX, BX
	ORQ  BX, ·ignored(SB)

next:
	DECQ R13
	JNE  disposition

	MOVQ $1, ·captured(SB)
	MOVQ R12, DX
	JMP  _rt0_amd64_linux(SB)

	// A process that does nothing until its standard input ends, with the
	// signal mask it was given; no runtime, a handful of pages. First it takes the name
	// of its argv[0]: prctl(PR_SET_NAME, argv[0]).
witness:
	MOVQ $SYS_prctl, AX
	MOVQ $PR_SET_NAME, DI
	MOVQ 8(SP), SI
	SYSCALL

wait:
	MOVQ $SYS_read, AX
	XORQ DI, DI
	LEAQ ·action(SB), SI
	MOVQ $8, DX
	SYSCALL
	CMPQ AX, $-4 // EINTR
	JEQ  wait
	MOVQ $SYS_exit_group, AX
	XORQ DI, DI
	SYSCALL
	JMP  wait
