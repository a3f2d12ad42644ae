// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"
)

// several says for what reasons objects are left alone, in an order that does not depend on
// where they lie.
func several(reasons []string) string {
	const shown = 3
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	if more := len(reasons) - shown; more > 0 {
		reasons = append(reasons[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(reasons, "; ")
}
