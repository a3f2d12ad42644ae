// SPDX-License-Identifier: Apache-2.0

//go:build race

package hostile

// more is how many times as much is allocated where the compiler instruments all that
// touches memory: conversions that cost nothing otherwise are made.
const more = 4
