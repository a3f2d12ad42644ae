// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Count is a number of things with its noun, such as 1 process, 2 processes.
func Count[N ~int | ~uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Bytes is a number of bytes with three digits, such as 1.23 GB of 1000^3 bytes.
func Bytes(bytes float64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	unit := ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB", "EB"} {
		if bytes /= 1000; bytes < 999.5 {
			break
		}
	}
	return fmt.Sprintf("%.3g %s", bytes, unit)
}

// Seconds is a time for people: 0.0123 ms, 12.3 s, 4 min 05 s, 2 h 03 min, 3 d 04 h.
func Seconds(seconds float64) string {
	whole := int64(seconds + 0.5)
	switch {
	case seconds > 0 && seconds < 0.001:
		return Number(seconds*1000) + " ms"
	case seconds < 10:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds < 99.95:
		return fmt.Sprintf("%.1f s", seconds)
	case whole < 3600:
		return fmt.Sprintf("%d min %02d s", whole/60, whole%60)
	case whole < 86400:
		return fmt.Sprintf("%d h %02d min", whole/3600, whole%3600/60)
	}
	return fmt.Sprintf("%d d %02d h", whole/86400, whole%86400/3600)
}

// Number is a number with three digits or more, without an exponent.
func Number(value float64) string {
	if value == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	unit := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(value)))) // of the third digit, inverted
	if unit < 1 {
		unit = 1
	}
	return strconv.FormatFloat(math.Round(value*unit)/unit, 'f', -1, 64)
}

// Field is the value of a field of an account, in the unit that its name ends in.
func Field(field string, value float64) string {
	switch {
	case strings.HasSuffix(field, "bytes"), strings.HasSuffix(field, "bytes_peak"):
		return Bytes(value)
	case strings.HasSuffix(field, "seconds"):
		return Seconds(value)
	}
	return Number(value)
}

// CutUnit takes the unit off a number, if it ends in one: K, M, G or T, of either case,
// which are powers of 1024 as sizes of memory are given everywhere. scale is 1 without.
func CutUnit(text string) (digits string, scale int64) {
	n := len(text)
	if n < 2 {
		return text, 1
	}
	unit := strings.IndexByte("KMGT", text[n-1]&^0x20)
	if unit < 0 {
		return text, 1
	}
	return text[:n-1], 1 << (10 * (unit + 1))
}
