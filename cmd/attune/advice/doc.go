// SPDX-License-Identifier: Apache-2.0

// Package advice is `attune advice`: what tunlets recommend, shown and applied.
package advice
