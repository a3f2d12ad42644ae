// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Quick has values of flags by their names; empty where the usual form is short.
type Quick map[string]string

// String returns the flags as one would type them.
func (q Quick) String() string {
	if len(q) == 0 {
		return "no other flag"
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		words = append(words, fmt.Sprintf("-%s %s", name, q[name]))
	}
	return strings.Join(words, " ")
}

// apply sets the flags that the user has not given.
func (q Quick) apply(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range q {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("-quick: -%s %s: %w", name, value, err)
		}
	}
	return nil
}
