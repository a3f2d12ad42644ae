// SPDX-License-Identifier: Apache-2.0

// Package emptyprobe puts BPF programs that do next to nothing on functions: what
// the kernel's probes cost by themselves, whoever uses them. It needs root.
package emptyprobe

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Kind is a program and how it is attached.
type Kind int

// Kinds of programs.
const (
	// PerfEvent is an empty program on a perf event, which all kernels have.
	PerfEvent Kind = iota
	// Multi is one on a uprobe_multi link, which costs less.
	Multi
	// MultiClock is one on a uprobe_multi link that asks for the time.
	MultiClock
)

// Probe is a program in the kernel.
type Probe struct {
	kind    Kind
	program *ebpf.Program
}

// New loads a program. The caller must Close it.
func New(kind Kind) (*Probe, error) {
	attach := ebpf.AttachTraceUprobeMulti
	if kind == PerfEvent {
		attach = ebpf.AttachNone
	}
	var instructions asm.Instructions
	if kind == MultiClock {
		instructions = append(instructions, asm.FnKtimeGetNs.Call())
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "empty", Type: ebpf.Kprobe, AttachType: attach, License: "GPL",
		Instructions: append(instructions, asm.Mov.Imm(asm.R0, 0), asm.Return()),
	})
	if err != nil {
		return nil, fmt.Errorf("load an empty program: %w", err)
	}
	return &Probe{kind, program}, nil
}

// Attach puts the program on the entry of a function of a file, in all processes
// that run it, until the link is closed.
func (p *Probe) Attach(path, function string) (link.Link, error) {
	symbol, err := Find(path, function)
	if err != nil {
		return nil, err
	}
	executable, err := link.OpenExecutable(path)
	if err != nil {
		return nil, err
	}
	if p.kind == PerfEvent {
		return executable.Uprobe("", p.program, &link.UprobeOptions{Address: symbol.FileOffset})
	}
	return executable.UprobeMulti(nil, p.program, &link.UprobeMultiOptions{Addresses: []uint64{symbol.FileOffset}})
}

// Close takes the program out of the kernel when nothing has it attached.
func (p *Probe) Close() error { return p.program.Close() }

// Find returns the function of that name in a file.
func Find(path, function string) (objfile.Symbol, error) {
	file, err := objfile.Open(path)
	if err != nil {
		return objfile.Symbol{}, err
	}
	found, err := file.Functions(function)
	if err = errors.Join(err, file.Close()); err != nil || len(found) != 1 {
		return objfile.Symbol{}, fmt.Errorf("%d functions %s: %w", len(found), function, err)
	}
	return found[0], nil
}
