// SPDX-License-Identifier: Apache-2.0

// Package number reads numbers as people write them, in options, limits and what programs
// print: one reader for the SDK of tunlets and for all of Attune. Its functions are safe for
// concurrent use.
package number

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Parse reads a finite number.
func Parse(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		err = strconv.ErrRange
	}
	return v, err
}

// ParseBytes reads a number of bytes, with a unit directly behind it or none: 2GB and 2e9 are the
// same, 2GiB and 2G are 2^31, and so on for K, M, T and P. Parts of a byte count only as parts of
// a unit, and are left out there.
func ParseBytes(text string) (uint64, error) {
	digits := strings.TrimRight(text, "KMGTPiBkb")
	scale, ok := unit(text[len(digits):])
	mantissa, exponent, _ := strings.Cut(digits, "e")
	exponent = strings.TrimPrefix(exponent, "+")
	const most = 2 // digits: more is no size, and would take its time
	if !ok || digits == "" || strings.Trim(mantissa, "0123456789.") != "" || strings.Trim(exponent, "0123456789") != "" || len(exponent) > most {
		return 0, strconv.ErrSyntax
	}
	amount, ok := new(big.Rat).SetString(digits)
	if !ok {
		return 0, strconv.ErrSyntax
	}
	amount.Mul(amount, new(big.Rat).SetUint64(scale))
	if !amount.IsInt() && scale == 1 {
		return 0, strconv.ErrSyntax
	}
	whole := new(big.Int).Quo(amount.Num(), amount.Denom())
	if !whole.IsUint64() {
		return 0, strconv.ErrRange
	}
	return whole.Uint64(), nil
}

// unit returns how many bytes a unit is.
func unit(text string) (scale uint64, ok bool) {
	if text == "" || text == "B" {
		return 1, true
	}
	power := strings.Index("KMGTP", strings.ToUpper(text[:1])) + 1
	step := uint64(1024)
	if text[1:] == "B" {
		step = 1000
	}
	scale = 1
	for range power {
		scale *= step
	}
	return scale, power > 0 && (text[1:] == "" || text[1:] == "B" || text[1:] == "iB")
}
