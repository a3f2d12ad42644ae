// SPDX-License-Identifier: Apache-2.0

// Package off is `attune off` and `attune on`.
package off
