// SPDX-License-Identifier: Apache-2.0

package fold

import "slices"

// bothEnds has the first of many entries and the latest: how it began, and how it is.
type bothEnds[T any] struct {
	list    []T
	omitted int // entries in between that had no place
}

// add adds the latest entry, of the most that are kept.
func (b *bothEnds[T]) add(entry T, most int) {
	if len(b.list) == most {
		b.list = slices.Delete(b.list, most/2, most/2+1)
		b.omitted++
	}
	b.list = append(b.list, entry)
}
