// SPDX-License-Identifier: Apache-2.0

// Package site is what asks the Analyzer of a site: `attune session` and `attune
// node`, and the processes of a site for `attune ps`.
package site
