// SPDX-License-Identifier: Apache-2.0

// Package tunletfind finds the tunlets that a command may use, and refuses names
// and options that none has.
package tunletfind
