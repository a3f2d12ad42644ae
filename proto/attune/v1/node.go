// SPDX-License-Identifier: Apache-2.0

package attunev1

// KeepOwn leaves of what a node has the parts of users whom reaches says, and the
// troubles of the node itself.
func (r *ControllerRecord) KeepOwn(reaches func(uid uint32) bool) {
	r.Shares = kept(r.GetShares(), func(s *SessionShare) bool { return reaches(s.GetUid()) })
	r.Mismatches = kept(r.GetMismatches(), func(m *Mismatch) bool { return reaches(m.GetUid()) })
	r.Troubles = kept(r.GetTroubles(), func(t *Trouble) bool { return t.Uid == nil || reaches(t.GetUid()) })
}

func kept[T any](list []T, keep func(T) bool) (out []T) {
	for _, item := range list {
		if keep(item) {
			out = append(out, item)
		}
	}
	return out
}
