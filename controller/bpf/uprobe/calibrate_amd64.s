// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Functions that do nothing, each with a first instruction of another class.

TEXT ·nopEntry(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x0f; BYTE $0x1f; BYTE $0x44; BYTE $0x00; BYTE $0x00
	RET

TEXT ·pushEntry(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ BX
	POPQ  BX
	RET

TEXT ·otherEntry(SB), NOSPLIT|NOFRAME, $0-0
	XORL AX, AX
	RET

// func calibrationEntries() (nop, push, other uintptr)
TEXT ·calibrationEntries(SB), NOSPLIT, $0-24
	LEAQ ·nopEntry(SB), AX
	MOVQ AX, nop+0(FP)
	LEAQ ·pushEntry(SB), AX
	MOVQ AX, push+8(FP)
	LEAQ ·otherEntry(SB), AX
	MOVQ AX, other+16(FP)
	RET

// func callEntry(entry uintptr, calls int)
TEXT ·callEntry(SB), NOSPLIT, $8-16
	MOVQ calls+8(FP), CX
again:
	MOVQ entry+0(FP), AX
	CALL AX
	DECQ CX
	JNZ  again
	RET
