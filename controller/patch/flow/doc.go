// SPDX-License-Identifier: Apache-2.0

// Package flow reads the machine code of functions: where their calls end, which
// addresses they name, and what in an object may lead into a stretch of them. What
// it does not understand it refuses, rather than guess. controller/patch decides by
// it where code can be changed.
//
// Only x86-64 code is understood. Values are immutable, except [Aims], which is safe
// for concurrent use.
package flow
