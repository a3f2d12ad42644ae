// SPDX-License-Identifier: Apache-2.0

// Package analyzer is `attune analyzer`: the Analyzer of a site.
package analyzer
