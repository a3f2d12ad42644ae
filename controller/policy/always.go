// SPDX-License-Identifier: Apache-2.0

package policy

// Always returns the policy itself. As a method value it is for those who ask
// for the policy each time, because it may change, where it does not.
func (p *Policy) Always() *Policy { return p }
