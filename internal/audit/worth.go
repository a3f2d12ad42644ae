// SPDX-License-Identifier: Apache-2.0

package audit

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// worth says whether a message of a stream asks for something that touches a
// process, or answers that. The first one is noted in any case: it says whom a
// stream is for.
func worth(m any) bool {
	switch m := m.(type) {
	case *attunev1.ManageRequest:
		return m.GetResult() != nil
	case *attunev1.ManageResponse:
		return m.GetApply() != nil || m.GetUndo() != nil || m.GetAddPoint() != nil || m.GetRemovePoint() != nil
	}
	return false
}
