// SPDX-License-Identifier: Apache-2.0

package attunev1

import "errors"

// mostObjective is the greatest value of an objective: sums and products of such values
// are numbers.
const mostObjective = 1e100

// errIncomparable says what is wrong with a value, and not which: it is said once.
var errIncomparable = errors.New("values that are below 0, above 1e+100 or no numbers are left out: a change is judged by how many times better one value is than another")

// CheckObjective says why a change cannot be judged by a value of an objective; nil: it can.
func CheckObjective(value float64) error {
	if value >= 0 && value <= mostObjective { // NaN is neither
		return nil
	}
	return errIncomparable
}
