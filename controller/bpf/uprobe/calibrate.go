// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
)

const (
	// calibrationCalls are timed at once and calibrationRounds times; the least
	// of the times counts, since what else the machine does only adds to it.
	// All of them take one or two milliseconds, and attaching takes eight.
	calibrationCalls  = 20
	calibrationRounds = 4
	// calibrationPoint is of no session: they count from 1.
	calibrationPoint = 65535
)

// price has prices measured, once. The caller holds mu.
func (a *attacher) price() {
	if a.prices == nil && a.whyUnpriced == nil {
		a.prices, a.whyUnpriced = a.calibrate()
	}
}

// calibrate measures what probes cost on this machine, by probes on functions of
// this process. It is called once, with the first attachment. The caller holds
// mu.
func (a *attacher) calibrate() (prices, error) {
	nop, push, other := calibrationEntries()
	entries := []uintptr{nop, push, other}
	symbols, err := symbolsAt(entries)
	if err != nil {
		return nil, err
	}
	plain := make([]time.Duration, len(entries))
	for i, entry := range entries {
		plain[i] = timeCalls(entry)
	}
	spec, err := Spec{
		Path: "/proc/self/exe", Symbols: symbols, Point: calibrationPoint,
		Watches: []Watch{{PID: os.Getpid()}},
	}.normalised()
	if err != nil {
		return nil, err
	}
	target, err := openTarget(spec)
	if err != nil {
		return nil, err
	}
	at, err := a.attach(spec, target, false)
	if err != nil {
		return nil, closeAfter(err, target.file)
	}
	defer func() {
		_ = a.watches.UnwatchProcess(os.Getpid(), calibrationPoint) // it is watched
		a.detach(at)
	}()
	found := make(prices)
	for i, entry := range entries {
		callEntry(entry, 1) // lets the kernel set its trampoline up
		found[at.symbols[i].Class] = max(timeCalls(entry)-plain[i], time.Nanosecond)
	}
	return found, nil
}

// timeCalls returns what one call takes.
func timeCalls(entry uintptr) (least time.Duration) {
	for round := range calibrationRounds {
		began := time.Now()
		callEntry(entry, calibrationCalls)
		if took := time.Since(began) / calibrationCalls; round == 0 || took < least {
			least = took
		}
	}
	return least
}

// symbolsAt finds where code of this process lies in its file.
func symbolsAt(entries []uintptr) (symbols []Symbol, err error) {
	for _, entry := range entries {
		offset, err := objfile.OwnOffset(entry)
		if err != nil {
			return nil, err
		}
		symbols = append(symbols, Symbol{Name: "calibration", Offset: offset})
	}
	return symbols, nil
}
