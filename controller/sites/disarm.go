// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/patch"
)

// What is looked through for programs of others is bounded: the process made it.
const (
	maxWindows = 4096
	maxNumbers = 1 << 16
)

// disarm changes one byte of each number that another giver has given. Threads may run
// through the programs meanwhile.
func (w writer) disarm(giver string) error {
	windows, err := w.windows()
	if err != nil {
		return err
	}
	left := maxNumbers
	for _, start := range windows {
		content, err := w.read(start, patch.WindowBytes)
		if errors.Is(err, unix.EFAULT) {
			continue // it was no window, and is not mapped any more
		}
		if err != nil {
			return err
		}
		foreign := patch.NumbersOfOthers(content, giver)
		if left -= len(foreign); left < 0 {
			return fmt.Errorf("%w: they measure under more than %d numbers", patch.ErrUnpatchable, maxNumbers)
		}
		for _, at := range foreign {
			if err := w.write(start+uint64(at), []byte{patch.NoNumber}); err != nil {
				return err
			}
		}
	}
	return nil
}

// windows are where windows may be. The kernel joins those that lie side by side.
func (w writer) windows() (starts []uint64, err error) {
	mappings, err := w.mapped.all(w.process.PID())
	if err != nil {
		return nil, err
	}
	for _, m := range mappings {
		if !isBare(m) {
			continue
		}
		first := (m.Start + patch.WindowBytes - 1) &^ (patch.WindowBytes - 1)
		for start := first; start < m.End && m.End-start >= patch.WindowBytes; start += patch.WindowBytes {
			if len(starts) == maxWindows {
				return nil, fmt.Errorf("%w: more than %d MiB of code without a file would have to be looked through",
					patch.ErrUnpatchable, maxWindows*patch.WindowBytes>>20)
			}
			starts = append(starts, start)
		}
	}
	return starts, nil
}
