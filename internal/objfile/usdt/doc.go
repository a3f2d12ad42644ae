// SPDX-License-Identifier: Apache-2.0

// Package usdt reads the static probes (USDT, <sys/sdt.h>) that a program's
// author has put into it: places with a name that survive every optimisation,
// each a single nop, and where its arguments are at that moment.
//
// The format is that of SystemTap:
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. Files
// are not trusted; the package has no state.
package usdt
