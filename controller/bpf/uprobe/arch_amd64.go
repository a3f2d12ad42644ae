// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Parameter registers, as indices of register_value() in
// include/registers.h: di si dx cx r8 r9, then ax bx r10 r11.
var (
	parametersC  = [...]uint8{0, 1, 2, 3, 4, 5}
	parametersGo = [...]uint8{6, 7, 3, 0, 1, 4, 5, 8, 9}
)

// parameterRegisters returns which registers hold the parameters at a
// function's entry: by the System V convention, or by that of Go's compiler.
// The latter spreads structs, strings (2) and slices (3) over registers, each
// of which counts.
func parameterRegisters(isGo bool) []uint8 {
	if isGo {
		return parametersGo[:]
	}
	return parametersC[:]
}

// registerOf returns the index of register_value() for a register's full name.
func registerOf(name string) (uint8, error) {
	names := [...]string{
		"rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax", "rbx",
		"r10", "r11", "r12", "r13", "r14", "r15", "rbp", "rsp",
	}
	if i := slices.Index(names[:], name); i >= 0 {
		return uint8(i), nil
	}
	if strings.HasPrefix(name, "xmm") {
		return 0, errNoFloats
	}
	return 0, fmt.Errorf("register %s cannot be read", name)
}

// maxInstruction is the longest x86 instruction in bytes.
const maxInstruction = 15

// Kernel 6.18 turns a 5-byte nop under a probe into a call, and emulates the
// other long ones; before, they were single-stepped.
const kernelKnowsNops = 6<<16 | 18<<8

// classify predicts what arch/x86/kernel/uprobes.c does with the instruction
// that code begins with, on a kernel of the given LINUX_VERSION_CODE.
func classify(code []byte, kernel uint32) instruction {
	prefixes, body := splitPrefixes(code)
	if kind := badPrefix(prefixes); kind != "" {
		return instruction{InstructionRefused, "the first instruction has a " + kind + " prefix, which the kernel refuses to probe"}
	}
	if len(body) == 0 {
		return instruction{class: InstructionUnknown}
	}
	if reason := refusedOpcode(body); reason != "" {
		return instruction{InstructionRefused, reason}
	}
	return instruction{class: classOf(code, prefixes, body, kernel)}
}

func classOf(code, prefixes, body []byte, kernel uint32) InstructionClass {
	switch {
	case isNop(body):
		switch {
		case body[0] == 0x90:
			return InstructionEmulated
		case kernel < kernelKnowsNops:
			return InstructionSingleStepped
		case bytes.HasPrefix(code, []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}):
			return InstructionOptimised
		}
		return InstructionEmulated
	case isPush(prefixes, body), isBranch(prefixes, body):
		return InstructionEmulated
	}
	return InstructionSingleStepped
}

// isNop: one byte, or the long form 0f 1f /0. endbr64 (f3 0f 1e fa) is none to
// the kernel.
func isNop(body []byte) bool {
	return body[0] == 0x90 || len(body) > 2 && body[0] == 0x0f && body[1] == 0x1f && body[2]&0x38 == 0
}

// isPush: push of a register, with at most the prefix for r8 to r15.
func isPush(prefixes, body []byte) bool {
	if len(prefixes) > 0 {
		return false
	}
	if body[0] == 0x41 && len(body) > 1 {
		body = body[1:]
	}
	return body[0] >= 0x50 && body[0] <= 0x57
}

// isBranch: near jump, call or conditional jump, relative, without the 16-bit
// prefix.
func isBranch(prefixes, body []byte) bool {
	if bytes.IndexByte(prefixes, 0x66) >= 0 {
		return false
	}
	switch {
	case body[0] == 0xe8, body[0] == 0xe9, body[0] == 0xeb, body[0]&0xf0 == 0x70:
		return true
	}
	return len(body) > 1 && body[0] == 0x0f && body[1]&0xf0 == 0x80
}

// refusedOpcode gives the reason for instructions that the kernel does not let
// run out of line.
func refusedOpcode(body []byte) string {
	switch op := body[0]; {
	case op == 0xcc || op == 0xcd || op == 0xf1:
		return "the first instruction is a software trap; another tool may have a breakpoint here"
	case op == 0xf4, op == 0xfa, op == 0xfb, op == 0xcf, op >= 0xe4 && op <= 0xe7, op >= 0xec && op <= 0xef, op >= 0x6c && op <= 0x6f:
		return "the first instruction is privileged, which the kernel refuses to probe"
	case op == 0x0f && len(body) > 1 && (body[1] == 0x05 || body[1] == 0x34):
		return "the first instruction is a system call, which the kernel refuses to probe"
	}
	return ""
}

// badPrefix names a prefix that the kernel refuses; fs and gs it does not.
func badPrefix(prefixes []byte) string {
	for _, prefix := range prefixes {
		switch prefix {
		case 0x26, 0x2e, 0x36, 0x3e:
			return "segment"
		case 0xf0:
			return "lock"
		}
	}
	return ""
}

func splitPrefixes(code []byte) (prefixes, body []byte) {
	isPrefix := func(b byte) bool {
		switch b {
		case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3:
			return true
		}
		return false
	}
	n := 0
	for n < len(code) && isPrefix(code[n]) {
		n++
	}
	return code[:n], code[n:]
}

// landingPad is endbr64, where indirect calls must arrive under control-flow
// enforcement: many distributions have every function begin with it.
var landingPad = []byte{0xf3, 0x0f, 0x1e, 0xfa}
