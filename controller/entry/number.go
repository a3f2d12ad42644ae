// SPDX-License-Identifier: Apache-2.0

package entry

// atSafePoints marks the keys of numbers that are not for measuring. Offsets in
// files are below.
const atSafePoints = 1 << 63

// SafePoint is a number of a function's own for commands that wait for its next
// entry ([ring.Command]): a [Sites.Measure] of it comes and goes beside what is
// measured there.
func (s *Sites) SafePoint(f Function) (int, error) {
	key := KeyOf(f)
	if s.functions.kernel(key) {
		return 0, errKernels
	}
	key.Offset |= atSafePoints
	return s.functions.Number(key)
}
