// SPDX-License-Identifier: Apache-2.0

// Package run is `attune run`: a program started, watched and tuned.
package run
