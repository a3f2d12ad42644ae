// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/attune-hpc/attune/bench/internal/measure"

// aggregationCases have a variable that says how many items go into a message. The
// best is the most that the program bears, which nobody would choose who waits for
// an item.
func aggregationCases() []Case {
	return []Case{{
		Name: "aggregation/TCP", Tunlet: "aggregation", Unit: "items/s", Format: measure.Native(),
		Sources: []Source{{Name: "item_sender"}},
		Command: []string{"{bin}/item_sender", "{seconds}"},
		Flags:   []string{"--tunlet-option", "aggregation.variable=items_per_message", "--tunlet-option", "aggregation.latency=200us"},
		Best:    Static{Command: []string{"{bin}/item_sender", "{seconds}", "1024"}},
	}}
}
