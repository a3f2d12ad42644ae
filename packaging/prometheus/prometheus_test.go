// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// promtool runs Prometheus' tool.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v (scripts/deps test installs prometheus): %s", args, err, out)
	}
}

// everything returns what a service could answer at most.
func everything(t *testing.T, of metrics.Service) string {
	t.Helper()
	r := metrics.New(of)
	r.Read(func(put metrics.Put) {
		for _, m := range metrics.All(of) {
			if !m.Counts {
				put(m, 1, make([]string, len(m.Labels))...)
			}
		}
	})
	if of == metrics.Analyzer {
		r.Observe(metrics.Gain, 1.5, "malloc")
		r.Add(metrics.Changes, 1, "malloc", metrics.ChangeKept)
	}
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestMetrics: names, units and help texts are as Prometheus wants them.
func TestMetrics(t *testing.T) {
	for _, of := range []metrics.Service{metrics.Node, metrics.Analyzer} {
		promtool(t, everything(t, of), "check", "metrics")
	}
}

// rule is one of an alert.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	text := files.Read(t, "attune.rules.yaml")
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// expressions are those of a board.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	text := files.Read(t, "attune.json")
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// TestNames: what the board, the rules and the runbook name is there, with the labels by
// which they ask for it.
func TestNames(t *testing.T) {
	known := map[string][]string{"node_textfile_mtime_seconds": {"file"}} // of node_exporter
	for _, m := range metrics.All("") {
		labels := []string{}
		if m.Of == "" {
			labels = append(labels, "service")
		}
		for _, l := range m.Labels {
			labels = append(labels, l.Name)
		}
		names := []string{m.Name}
		if m.Kind == metrics.Histogram {
			names = append(names, m.Name+"_bucket", m.Name+"_sum", m.Name+"_count")
		}
		for _, name := range names {
			known[name] = labels
		}
	}
	asked := expressions(t)
	for _, r := range rules(t) {
		asked = append(asked, r.Expr)
	}
	runbook := files.Read(t, "../../docs/runbook.md")
	for _, text := range append(asked, string(runbook)) {
		for _, found := range regexp.MustCompile(`\b((?:attune|node_textfile)_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(text, -1) {
			labels, there := known[found[1]]
			if !there {
				t.Errorf("there is no metric %s: %.200s", found[1], text)
			}
			for _, l := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(found[2], -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s has no label %s: %.200s", found[1], l[1], text)
				}
			}
		}
	}
	if len(asked) < 40 {
		t.Errorf("%d expressions were found", len(asked))
	}
}

// TestBoard: each question of the board is PromQL.
func TestBoard(t *testing.T) {
	var file strings.Builder
	file.WriteString("groups:\n  - name: board\n    rules:\n")
	for i, e := range expressions(t) {
		e = strings.ReplaceAll(e, "$__rate_interval", "5m")
		fmt.Fprintf(&file, "      - record: board_%d\n        expr: %q\n", i, e)
	}
	path := filepath.Join(t.TempDir(), "board.yaml")
	files.Write(t, path, file.String(), 0o600)
	promtool(t, "", "check", "rules", path)
}

// TestRunbook: each alert has its place in the runbook, and the other way round.
func TestRunbook(t *testing.T) {
	runbook := files.Read(t, "../../docs/runbook.md")
	var want, got []string
	for _, r := range rules(t) {
		want = append(want, r.Alert)
		if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, "docs/runbook.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s leads to %q", r.Alert, url)
		}
		if r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: %v, %v", r.Alert, r.Labels, r.Annotations)
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^## (Attune\w+)$`).FindAllStringSubmatch(string(runbook), -1) {
		got = append(got, found[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// healthy is a site that is well: a node and an Analyzer, by series with their values each
// minute.
var healthy = map[string]string{
	`up{job="attuned",instance="n1"}`:                                                            "1x200",
	`attune_analyzer_nodes{instance="h1"}`:                                                       "9x200",
	`attune_node_policy_ok{instance="n1"}`:                                                       "1x200",
	`attune_node_switched_off{instance="n1"}`:                                                    "0x2000",
	`attune_registry_connected{instance="n1",service="attuned"}`:                                 "1x200",
	`attune_analyzer_registry_keeps{instance="h1"}`:                                              "1x200",
	`attune_certificate_start_timestamp_seconds{instance="n1",service="attuned"}`:                "0x200",
	`attune_certificate_expiry_timestamp_seconds{instance="n1",service="attuned"}`:               "86400x200",
	`attune_node_journal_writable{instance="n1"}`:                                                "1x200",
	`attune_state_available_bytes{instance="n1",service="attuned"}`:                              "1e9x200",
	`attune_audit_trouble{instance="n1",service="attuned"}`:                                      "0x200",
	`attune_audit_lines_lost_total{instance="n1",service="attuned"}`:                             "3x200",
	`attune_loops_standing{instance="n1",service="attuned"}`:                                     "0x200",
	`attune_analyzer_sessions_refused_total{instance="h1",reason="too_often"}`:                   "5x200",
	`attune_node_sessions_lost_total{instance="n1"}`:                                             "1x200",
	`attune_analyzer_reports_lost_total{instance="h1"}`:                                          "1x200",
	`attune_analyzer_session_records_lost_total{instance="h1"}`:                                  "0x200",
	`attune_analyzer_records_total{instance="h1"}`:                                               "0+1000x200",
	`attune_analyzer_records_lost_total{instance="h1",place="ring"}`:                             "0+1x200",
	`attune_analyzer_changes_total{instance="h1",tunlet="malloc",result="applied"}`:              "0+1x200",
	`attune_analyzer_changes_total{instance="h1",tunlet="malloc",result="failed"}`:               "0x200",
	`attune_node_sessions_cpu_seconds_total{instance="n1"}`:                                      "0+6x200",
	`attune_process_cpu_seconds_total{instance="n1",service="attuned"}`:                          "0+1x200",
	`attune_build_info{instance="n1",service="attuned",version="1",commit="a",goversion="go"}`:   "1x2000",
	`attune_build_info{instance="h1",service="analyzer",version="1",commit="a",goversion="go1"}`: "1x2000",
	`node_textfile_mtime_seconds{instance="n1",file="/x/attuned.prom"}`:                          "0+60x200",
}

// TestAlerts: nothing fires where all is well, and each alert when what it is about happens.
func TestAlerts(t *testing.T) {
	ill := map[string]map[string]string{ // what is otherwise, by alert
		"AttuneServiceDown":          {`up{job="attuned",instance="n1"}`: "0x200"},
		"AttuneMetricsStale":         {`node_textfile_mtime_seconds{instance="n1",file="/x/attuned.prom"}`: "0x200"},
		"AttuneNodesMissing":         {`attune_analyzer_nodes{instance="h1"}`: "9x60 8x200"},
		"AttunePolicyBroken":         {`attune_node_policy_ok{instance="n1"}`: "0x200"},
		"AttuneSwitchedOff":          {`attune_node_switched_off{instance="n1"}`: "1x2000"},
		"AttuneRegistryAway":         {`attune_registry_connected{instance="n1",service="attuned"}`: "0x200"},
		"AttuneRegistryKeepsNothing": {`attune_analyzer_registry_keeps{instance="h1"}`: "0x200"},
		"AttuneCertificateEnds":      {`attune_certificate_expiry_timestamp_seconds{instance="n1",service="attuned"}`: "7300x200"},
		"AttuneJournalNotWritable":   {`attune_node_journal_writable{instance="n1"}`: "0x200"},
		"AttuneDiskAlmostFull":       {`attune_state_available_bytes{instance="n1",service="attuned"}`: "1e8x200"},
		"AttuneAuditTrouble":         {`attune_audit_lines_lost_total{instance="n1",service="attuned"}`: "0+1x200"},
		"AttuneLoopStands":           {`attune_loops_standing{instance="n1",service="attuned"}`: "1x200"},
		"AttuneSessionsRefused":      {`attune_analyzer_sessions_refused_total{instance="h1",reason="too_often"}`: "0+1x200"},
		"AttuneSessionsGivenUp":      {`attune_node_sessions_lost_total{instance="n1"}`: "0x100 1x100"},
		"AttuneReportsLost":          {`attune_analyzer_session_records_lost_total{instance="h1"}`: "0+1x200"},
		"AttuneRecordsLost":          {`attune_analyzer_records_lost_total{instance="h1",place="ring"}`: "0+100x200"},
		"AttuneChangesFail":          {`attune_analyzer_changes_total{instance="h1",tunlet="malloc",result="failed"}`: "0+1x200"},
		"AttuneTakesMuch":            {`attune_node_sessions_cpu_seconds_total{instance="n1"}`: "0+40x200"},
		"AttuneVersionsDiffer":       {`attune_build_info{instance="n2",service="attuned",version="2",commit="b",goversion="go"}`: "1x2000"},
	}
	for _, r := range rules(t) {
		if ill[r.Alert] == nil {
			t.Errorf("%s: no test", r.Alert)
		}
	}
	path, err := filepath.Abs("attune.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	fmt.Fprintf(&file, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n", path)
	for _, alert := range append([]string{""}, slices.Sorted(maps.Keys(ill))...) {
		series := maps.Clone(healthy)
		maps.Copy(series, ill[alert])
		fmt.Fprintf(&file, "  - name: %q\n    interval: 1m\n    input_series:\n", alert)
		for _, name := range slices.Sorted(maps.Keys(series)) {
			fmt.Fprintf(&file, "      - {series: '%s', values: '%s'}\n", name, series[name])
		}
		at, want := "2h", ""
		if alert == "AttuneSwitchedOff" || alert == "AttuneVersionsDiffer" {
			at = "25h"
		}
		if alert != "" {
			want = fmt.Sprintf("{labels: '{alertname=%q}', value: 1}", alert)
		}
		fmt.Fprintf(&file, "    promql_expr_test:\n      - {expr: 'count by (alertname) (ALERTS{alertstate=\"firing\"})', eval_time: %s, exp_samples: [%s]}\n", at, want)
	}
	tests := filepath.Join(t.TempDir(), "tests.yaml")
	files.Write(t, tests, file.String(), 0o600)
	promtool(t, "", "check", "rules", path)
	promtool(t, "", "test", "rules", tests)
}
