// SPDX-License-Identifier: Apache-2.0

// Package procs is what commands look up about processes that they do not change.
package procs
