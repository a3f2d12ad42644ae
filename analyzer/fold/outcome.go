// SPDX-License-Identifier: Apache-2.0

package fold

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// isBack reports whether the original value is back, if it ever was away: a change that was
// taken back to compare may have been made again since.
func isBack(ch *attunev1.RecordedChange) bool {
	switch ch.GetOutcome() {
	case attunev1.Outcome_OUTCOME_APPLIED, attunev1.Outcome_OUTCOME_GONE, attunev1.Outcome_OUTCOME_OVERRIDDEN:
		return false
	}
	return true
}

func tookEffect(ch *attunev1.RecordedChange) bool { return ch.GetAppliedNanos() > 0 }
