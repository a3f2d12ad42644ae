// SPDX-License-Identifier: Apache-2.0

// Package users finds the users of this machine, those of its directory
// service included. It has no state.
package users
