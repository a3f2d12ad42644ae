// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// bars draws the histogram: one line per power of two.
func (r row) bars() string {
	const width = 40
	if r.at.read.Value == "" || len(r.sum.Histogram) == 0 {
		return ""
	}
	most := slices.Max(r.sum.Histogram)
	first := slices.IndexFunc(r.sum.Histogram, func(n uint64) bool { return n > 0 })
	if first < 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s of %s\n", r.at.read.Value, r.name())
	for bucket := first; bucket < len(r.sum.Histogram); bucket++ {
		n := r.sum.Histogram[bucket]
		high, cells := bits.Mul64(n, width)
		length, _ := bits.Div64(high, cells, most)
		fmt.Fprintf(&b, "  %20s %-*s %d\n", r.bucket(bucket), width, strings.Repeat("#", int(length)), n)
	}
	return b.String()
}

// bucket names the values of a bit width; the first one has all negative ones, too.
func (r row) bucket(b int) string {
	switch {
	case b > 0:
		return "≥ " + r.value(1<<(b-1))
	case r.at.signed():
		return "≤ 0"
	}
	return "0"
}
