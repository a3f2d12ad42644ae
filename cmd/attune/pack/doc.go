// SPDX-License-Identifier: Apache-2.0

// Package pack is `attune pack` and `attune unpack`, and what a packed program
// starts beside itself.
package pack
