// SPDX-License-Identifier: Apache-2.0

package patch

// Exit is an instruction with which a function ends.
type Exit struct{ Conditional bool }
