// SPDX-License-Identifier: Apache-2.0

package entry

// Number is the number under which the calls of a function are measured; see
// [Functions.Number].
func (s *Sites) Number(f Function) (int, error) { return s.functions.Number(KeyOf(f)) }
