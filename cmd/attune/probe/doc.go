// SPDX-License-Identifier: Apache-2.0

// Package probe is `attune probe`: measure points that a person puts into running
// processes.
package probe
