// SPDX-License-Identifier: Apache-2.0

// Package trap has a thread of one process stop at a place, by a uprobe whose
// program stops it: what debug registers do where they work.
package trap
