// SPDX-License-Identifier: Apache-2.0

// Package commands joins the commands of attune into one tree, for the program and for
// its manual pages. It has no state.
package commands
