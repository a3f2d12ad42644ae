// SPDX-License-Identifier: Apache-2.0

// Package account is `attune account`: a program started, and what it and all its
// processes took.
package account
