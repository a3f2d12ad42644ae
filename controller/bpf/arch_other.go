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

func parameterRegister(_ bool, parameter uint32) (uint8, error) {
	const registers = 8
	if parameter >= registers {
		return 0, fmt.Errorf("%w: parameter %d is not passed in a register", errSpec, parameter)
	}
	return uint8(parameter), nil
}

const maxInstruction = 4

func classify([]byte, uint32) instruction {
	return instruction{class: InstructionUnknown, text: "not decoded on " + runtime.GOARCH}
}
