// SPDX-License-Identifier: Apache-2.0

// Package gocode finds where functions of Go programs return.
//
// A return probe replaces the return address on the stack. Go moves its stacks
// and reads return addresses when it does, so a return probe crashes it; a
// probe at each return instruction sees the same exits and writes nowhere.
// What leaves a function by a panic is not seen.
package gocode
