// SPDX-License-Identifier: Apache-2.0

package sites

// atSafePoints is which of a function's numbers is not for measuring.
const atSafePoints = -1

// SafePoint is a number of a function's own for commands that wait for its next
// entry ([shm.Command]): a [Sites.Measure] of it comes and goes beside what is
// measured there.
func (s *Sites) SafePoint(f Function) (int, error) {
	return s.functions.Number(KeyOf(f), atSafePoints)
}
