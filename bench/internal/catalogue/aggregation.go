// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/attune-hpc/attune/bench/internal/measure"

// aggregationCases have a variable that says how many items go into a message. What
// counts is items per second, for which the most that the program bears is best; the
// tunlet is told so by the price of a message, 100 ms, as on the longest of ways. Who
// waits for an item would tell it less, and get fewer of them in a message.
func aggregationCases() []Case {
	return []Case{{
		Name: "aggregation/TCP", Tunlet: "aggregation", Unit: "items/s", Format: measure.Native(),
		Sources: []Source{{Name: "item_sender"}},
		Command: []string{"{bin}/item_sender", "{seconds}"},
		Flags:   []string{"--tunlet-option", "aggregation.variable=items_per_message", "--tunlet-option", "aggregation.latency=100ms", "--tunlet-option", "aggregation.most=1024"},
		Best:    Static{Command: []string{"{bin}/item_sender", "{seconds}", "1024"}},
	}}
}
