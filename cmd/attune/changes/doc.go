// SPDX-License-Identifier: Apache-2.0

// Package changes is `attune changes` and `attune undo`.
package changes
