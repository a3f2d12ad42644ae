// SPDX-License-Identifier: Apache-2.0

// Package doctor is `attune doctor`: what can be done on this machine.
package doctor
