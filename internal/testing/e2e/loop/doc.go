// SPDX-License-Identifier: Apache-2.0

// Package loop tests the closed loop within one process: a real Analyzer and a
// real Application Controller, joined as `attune run` joins them, a program and a
// tunlet. It needs no privileges and none of the built commands; the tunlet is the
// test program by another name.
package loop
