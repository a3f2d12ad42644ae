// SPDX-License-Identifier: Apache-2.0

// Package archived opens the archive of the user who runs the command, and puts accounts
// into it.
package archived
