// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// MinEvery is the least period of Options.
const MinEvery = 10 * time.Millisecond

// Options says what is to be measured how; the zero value is good.
type Options struct {
	// Every is the time between two looks at the living processes, at least
	// MinEvery; 0: 50 ms.
	Every time.Duration
	// Series gets a line of JSON at each look, with one call; nil: none. With SeriesCSV it
	// gets comma-separated values, after a line with the names of the fields.
	// SeriesPath is its name in the account.
	Series     io.Writer
	SeriesCSV  bool
	SeriesPath string
	// Watch, if not nil, is called with what there is at each look, and must return
	// at once.
	Watch func(account.Row)
	// Snapshots are when what there is becomes part of the account.
	Snapshots []Event
	// Limits are what the command may take.
	Limits []Limit
	// Grace is what passes between SIGTERM and SIGKILL when a limit is exceeded.
	Grace time.Duration
	// Wait is for the end of all processes, not of the command's own only.
	Wait bool
	// NoGroup leaves the command in the control group of this process.
	NoGroup bool
	// Beside is for a process that does more than the account, as attune run does, and has
	// children of its own. What loses its parent is left to whoever gets it, the command
	// stays in this process's control group, what is dear to ask is not asked, and only
	// maxTree processes are listed.
	Beside bool
	// Files has files and the network accounted for, with the kernel's account only:
	// each system call of the machine costs more while that is done.
	Files bool
	// Directories are those whose footprint is measured, again and again, at most a twentieth of the
	// time; empty: none, unless it is limited, and then the working directory.
	Directories []string
	// WithoutKernel has the account made as without root.
	WithoutKernel bool

	// Of tests: helper is the command of a process that serves [Operations]; nil: this program
	// with readers.Argument. helperPatience is how long it may take for more than its walk; 0: 5 s.
	helper         []string
	helperPatience time.Duration
	// Likewise, freeTime is the CPU time of looks that keeps no next one away; 0: defaultFreeTime.
	freeTime time.Duration
}

// needsBytes says whether a look is to see what threads read and wrote.
func (o *Options) needsBytes() bool {
	return o.Series != nil || o.Watch != nil || o.Snapshots != nil ||
		slices.ContainsFunc(o.Limits, func(l Limit) bool { return strings.HasPrefix(l.Field, "io.") })
}
