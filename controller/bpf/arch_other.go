// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package bpf

import (
	"fmt"
	"runtime"
)

// uprobesSupported says whether uprobes were ever run on this architecture.
// The programs compile for arm64, but nobody has tried them.
func uprobesSupported() error {
	return &UnsupportedError{Feature: uprobes, Reason: "not tried on " + runtime.GOARCH + " yet"}
}

func parameterRegisters(bool) []uint8 { return []uint8{0, 1, 2, 3, 4, 5, 6, 7} }

func registerOf(name string) (uint8, error) {
	return 0, fmt.Errorf("register %s cannot be read", name)
}

const maxInstruction = 4

// landingPad is not known.
var landingPad []byte

func classify([]byte, uint32) instruction {
	return instruction{class: InstructionUnknown, text: "not decoded on " + runtime.GOARCH}
}
