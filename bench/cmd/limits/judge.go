// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
)

func (f *figures) fail(format string, args ...any) {
	f.Failed = append(f.Failed, fmt.Sprintf(format, args...))
}

// judgeRecord sees that the account says which limit was exceeded, and that the command
// itself was killed. It returns whether the account has more than the limit.
func (f *figures) judgeRecord(text []byte, field string, amount float64) (exceeded bool, err error) {
	var a account.Account
	if err := json.Unmarshal(text, &a); err != nil {
		return false, err
	}
	if a.Exit.Type != account.ExitLimits || a.Exit.Signal != "SIGKILL" || len(a.Exit.Limits) != 1 {
		f.fail("%s: the account says of the end: %+v", field, a.Exit)
	}
	n, known := a.Number(field)
	if known {
		f.OverPercent = append(f.OverPercent, 100*(n/amount-1))
	}
	return known && n > amount, nil
}

// readLives reads what stubborn.c writes: when the limit was exceeded, and of each process
// its id and when it was last alive, nanoseconds. The process that exceeds the limit may not
// have noted it, where the tree as a whole had exceeded it before: exceeded says that.
func (f *figures) readLives(path, field string, exceeded bool) error {
	data, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case len(data) == 0:
		f.fail("%s: ended before the tree had begun", field)
		return nil
	}
	words := make([]uint64, len(data)/8)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(data[8*i:])
	}
	var last uint64
	for process := range slices.Chunk(words[1:], 2) {
		if last = max(last, process[1]); alive(process[0]) {
			f.fail("process %d is left", process[0])
		}
	}
	excess := words[0]
	if excess == 0 && !exceeded {
		f.fail("%s: ended before the limit was exceeded", field)
		return nil
	}
	late := 0.0
	if excess != 0 && excess < last {
		late = float64(last-excess) / 1e6
	}
	f.LateMilliseconds = append(f.LateMilliseconds, late)
	return nil
}

func alive(pid uint64) bool {
	stat, err := procid.ReadStat(int(pid))
	return err == nil && !stat.Zombie()
}

// late is a quantile of how late it was.
func (f *figures) late(share float64) string {
	return present.Number(measure.Quantile(f.LateMilliseconds, share)) + " ms"
}

// most is the greatest of the values, NaN for none.
func most(values []float64) float64 { return measure.Quantile(values, 1) }

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}
