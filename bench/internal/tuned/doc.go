// SPDX-License-Identifier: Apache-2.0

// Package tuned runs programs under `attune run` and reads the report of it.
package tuned
