// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/procid"
)

// SymbolStatus tells what became of one function.
type SymbolStatus struct {
	Symbol
	// Class is how the kernel runs the first instruction.
	Class InstructionClass
	// Cost is what one hit takes from the application. Measured says that it was
	// measured on this machine, else it is that of another one.
	Cost     time.Duration
	Measured bool
	// Refused is the reason why the function is not probed; else empty.
	Refused string
}

func (s *SymbolStatus) refuse(reason string) {
	s.Refused, s.Class, s.Cost = reason, InstructionRefused, 0
}

// RefusedError says that not one of the functions can be probed.
type RefusedError struct {
	// Path of the file.
	Path string
	// Symbols with the reason of each.
	Symbols []SymbolStatus
}

// Error names the first function and its reason.
func (e *RefusedError) Error() string {
	first := e.Symbols[0]
	return fmt.Sprintf("probe %s in %s: %s", first.Name, e.Path, first.Refused)
}

// examine reads and judges the first instruction of each function, for a
// kernel of that version. Reading
// also brings the page into memory: the first uprobe on a page that is not
// there draws a warning from the kernel.
func examine(spec Spec, target *target, kernel uint32, prices prices) []SymbolStatus {
	symbols := make([]SymbolStatus, 0, len(spec.Symbols))
	for _, symbol := range spec.Symbols {
		status := SymbolStatus{Symbol: symbol}
		status.Offset = PlaceOf(target.file, symbol)
		code := make([]byte, maxInstruction)
		n, err := target.file.ReadAt(code, int64(status.Offset))
		if n == 0 {
			status.Refused = fmt.Sprintf("read code at offset %#x: %v", symbol.Offset, err)
			symbols = append(symbols, status)
			continue
		}
		verdict := classify(code[:n], kernel)
		status.Class, status.Refused = verdict.class, verdict.reason
		status.Cost, status.Measured = prices.of(verdict.class, spec.Place)
		symbols = append(symbols, status)
	}
	return symbols
}

// PlaceOf returns where in its file a symbol is probed: behind the landing pad
// of indirect calls, which the kernel would single-step.
func PlaceOf(file io.ReaderAt, symbol Symbol) uint64 {
	code := make([]byte, len(landingPad))
	if n, _ := file.ReadAt(code, int64(symbol.Offset)); n > 0 && bytes.Equal(code, landingPad) {
		return symbol.Offset + uint64(n)
	}
	return symbol.Offset
}

func refuse(symbols []SymbolStatus, offset uint64, err error) {
	reason := err.Error()
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errNotSupported) {
		reason = "the kernel refuses to probe this instruction"
	}
	for i := range symbols {
		if symbols[i].Offset == offset {
			symbols[i].refuse(reason)
		}
	}
}

// errNotSupported is ENOTSUPP of the kernel, which was never meant to leave it.
const errNotSupported = unix.Errno(524)

// ofNoFunction is why nothing can be attached whatever the function: the privilege is
// missing, or the process has ended (procid.ErrGone), which the kernel tells in several ways.
// multi says that uprobe_multi attaches; one perf event per function takes more than that.
func ofNoFunction(err error, pid int, multi bool) error {
	if errors.Is(err, os.ErrPermission) {
		remedy := bpf.PrivilegeRemedy
		if !multi {
			remedy = "needs root or CAP_SYS_ADMIN before Linux 6.6"
		}
		return &bpf.UnsupportedError{Feature: uprobes, Reason: "not permitted", Remedy: remedy, Err: err}
	}
	if err == nil || pid == 0 {
		return nil
	}
	if stat, statErr := procid.ReadStat(pid); statErr == nil && !stat.Zombie() {
		return nil
	}
	return fmt.Errorf("probe process %d: %w", pid, procid.GoneError(unix.ESRCH))
}
