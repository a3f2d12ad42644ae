// SPDX-License-Identifier: Apache-2.0

// Package prometheus has what a site's monitoring takes: rules for alerts
// (attune.rules.yaml), and a board for Grafana (attune.json). Its tests try the rules by
// promtool, and hold both to the metrics that there are and to docs/runbook.md.
package prometheus
