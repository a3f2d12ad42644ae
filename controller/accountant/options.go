// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"io"
	"strings"
	"time"
)

// MinEvery is the least period of Options.
const MinEvery = 10 * time.Millisecond

// Options says what is to be measured how; the zero value is good.
type Options struct {
	// Every is the time between two looks at the living processes, at least
	// MinEvery; 0: 50 ms.
	Every time.Duration
	// Series gets a line of JSON at each look, with one call; nil: none.
	// SeriesPath is its name in the account.
	Series     io.Writer
	SeriesPath string
	// Limits are what the command may take.
	Limits []Limit
	// Grace is what passes between SIGTERM and SIGKILL when a limit is exceeded.
	Grace time.Duration
	// Wait is for the end of all processes, not of the command's own only.
	Wait bool
	// NoGroup leaves the command in the control group of this process.
	NoGroup bool
	// WithoutKernel has the account made as without root.
	WithoutKernel bool
}

// limitsBytes says whether a limit needs what threads read and wrote.
func (o *Options) limitsBytes() bool {
	for _, limit := range o.Limits {
		if strings.HasPrefix(limit.Field, "io.") {
			return true
		}
	}
	return false
}
