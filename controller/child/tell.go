// SPDX-License-Identifier: Apache-2.0

package child

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// over tells that the Analyzer wants the session ended.
func (c *conversation) over(keep []string, reason error) {
	_ = c.tell(over, ending{keep, reason.Error()}) // attuned is gone otherwise
}

// answered tells what became of a change.
func (c *conversation) answered(result *attunev1.ActionResult) {
	if text, err := encoded(result); err == nil { // what cannot be encoded reaches no Analyzer either
		_ = c.tell(answered, text) // attuned is gone otherwise
	}
}
