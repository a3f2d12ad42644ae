// SPDX-License-Identifier: Apache-2.0

// Package capture is what a measure point takes at each hit, in a form that is
// checked once and executed by both engines: DMLib in the process and the BPF
// programs in the kernel.
//
// A [Program] is compiled from a MeasurePoint. It lists captures, predicates on
// them, which one is summed up and which one is the key. [Program.Encode] makes
// struct attune_program of dmlib/include/attune/program.h for one process, which
// either engine interprets; what the values mean (widening, comparison, order)
// stands once, in the same header, and is compiled into both.
//
// All values are immutable; functions may be called from any goroutine.
package capture
