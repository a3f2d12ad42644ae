// SPDX-License-Identifier: Apache-2.0

package quota

// Surplus says which of a list, the oldest first, has to go when the list is too long:
// the oldest of whoever has most, so that nobody drives out what is another's. Of an
// empty list it is -1.
func Surplus[T any, K comparable](list []T, of func(T) K) (index int) {
	count, most := make(map[K]int), 0
	for _, one := range list {
		count[of(one)]++
		most = max(most, count[of(one)])
	}
	for i, one := range list {
		if count[of(one)] == most {
			return i
		}
	}
	return -1
}
