// SPDX-License-Identifier: Apache-2.0

// Package attach is `attune attach`: processes tuned that run already.
package attach
