// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Tracepoints are programs at raw tracepoints of the kernel; the zero value has none. They
// are for one goroutine.
type Tracepoints []link.Link

// Attach has a program called at a tracepoint from now on.
func (t *Tracepoints) Attach(tracepoint string, program *ebpf.Program) error {
	attached, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepoint, Program: program})
	if err != nil {
		return fmt.Errorf("attach to %s: %w", tracepoint, err)
	}
	*t = append(*t, attached)
	return nil
}

// Close detaches all programs.
func (t Tracepoints) Close() error {
	var errs []error
	for _, attached := range t {
		errs = append(errs, attached.Close())
	}
	return errors.Join(errs...)
}
