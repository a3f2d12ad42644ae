// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"math"
	"strconv"
	"strings"
)

// ParseBytes reads a number of bytes: 2GB is 2e9, 2GiB and 2G are 2^31.
func ParseBytes(text string) (float64, error) {
	digits := strings.TrimRight(text, "KMGTPiBkb")
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, err
	}
	unit := text[len(digits):]
	if unit == "" || unit == "B" {
		return number, nil
	}
	power := strings.Index("KMGTP", strings.ToUpper(unit[:1])) + 1
	switch rest := unit[1:]; {
	case power == 0:
	case rest == "" || rest == "iB":
		return number * math.Pow(1024, float64(power)), nil
	case rest == "B":
		return number * math.Pow(1000, float64(power)), nil
	}
	return 0, strconv.ErrSyntax
}
