// SPDX-License-Identifier: Apache-2.0

// Package rooms has no code of its own: its test reads the packages whose shape is
// promised, and fails where a file, a type or the files together outgrow it.
package rooms
