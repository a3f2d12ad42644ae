// SPDX-License-Identifier: Apache-2.0

// Package quantity writes numbers with their units for people, and takes units off. Its
// functions are safe for concurrent use.
package quantity
