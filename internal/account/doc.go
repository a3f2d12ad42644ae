// SPDX-License-Identifier: Apache-2.0

// Package account finds the users of this machine, those of its directory
// service included. It has no state.
package account
