// SPDX-License-Identifier: Apache-2.0

// Package pty opens pseudo-terminals, for tests that need a real one. A
// Terminal belongs to one goroutine.
package pty
