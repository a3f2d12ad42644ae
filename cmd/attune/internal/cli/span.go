// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// day is what spans of time may be given in, beside what Go knows.
const day = 24 * time.Hour

// Span is a flag for a time that has gone by: as Go has it (90m, 48h), or in days (30d).
type Span time.Duration

// String implements pflag.Value.
func (s *Span) String() string {
	if d := time.Duration(*s); d > 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return time.Duration(*s).String()
}

// Set implements pflag.Value.
func (s *Span) Set(text string) error {
	unit := time.Duration(1)
	d, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int64
		n, err = strconv.ParseInt(days, 10, 16)
		d, unit = time.Duration(n), day
	}
	if err != nil || d < 0 {
		return errors.New("want a time that has gone by, such as 90m, 48h or 30d")
	}
	*s = Span(d * unit)
	return nil
}

// Type implements pflag.Value.
func (s *Span) Type() string { return "TIME" }
