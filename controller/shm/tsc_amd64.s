// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func ticks() uint64
//
// The fence keeps the reading from moving ahead of what came before, so that
// it can be bracketed with a reading of the system clock.
TEXT ·ticks(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
