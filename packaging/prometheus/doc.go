// SPDX-License-Identifier: Apache-2.0

// Package prometheus has what a site's monitoring takes: rules for alerts
// (attune.rules.yaml), tests of theirs by promtool (testdata), and a board for Grafana
// (attune.json). Its tests hold them to the metrics that there are, and to docs/runbook.md.
package prometheus
