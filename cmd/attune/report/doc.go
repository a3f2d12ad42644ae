// SPDX-License-Identifier: Apache-2.0

// Package report is `attune report`: the report of a recorded run.
package report
