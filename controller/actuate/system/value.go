// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/quantity"
)

// badValue makes an ErrBadValue.
func badValue(format string, arguments ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadValue}, arguments...)...)
}

// whole parses an integer between bounds.
func whole(low, high int64) func(string) (string, error) {
	return func(text string) (string, error) {
		n, err := ParseSize(text)
		if err != nil || n < low || n > high {
			return "", badValue("%q is not a whole number from %d to %d", text, low, high)
		}
		return strconv.FormatInt(n, 10), nil
	}
}

// truth parses a switch.
func truth(text string) (string, error) {
	switch strings.ToLower(text) {
	case "1", "true", "on", "yes":
		return "1", nil
	case "0", "false", "off", "no":
		return "0", nil
	}
	return "", badValue("%q is not 0 or 1", text)
}

// ParseSize parses an integer that may end in K, M, G or T, powers of 1024.
func ParseSize(text string) (int64, error) {
	digits, scale := quantity.CutUnit(text)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, err
	}
	if n*scale/scale != n {
		return 0, strconv.ErrRange
	}
	return n * scale, nil
}

// cpuList parses a list such as "0-3,8" into its canonical form.
func cpuList(text string) (string, error) {
	cpus, err := cpulist.Parse(text)
	if err != nil {
		return "", badValue("%w", err)
	}
	return cpulist.Format(cpus), nil
}

// unlimited is how a limit without bound is written.
const unlimited = "unlimited"

// parseBound parses one resource limit.
func parseBound(text string) (uint64, error) {
	if strings.EqualFold(text, unlimited) {
		return math.MaxUint64, nil
	}
	n, err := ParseSize(text)
	if err != nil || n < 0 {
		return 0, badValue("%q is not a number, or %s", text, unlimited)
	}
	return uint64(n), nil
}

func formatBound(n uint64) string {
	if n == math.MaxUint64 {
		return unlimited
	}
	return strconv.FormatUint(n, 10)
}
