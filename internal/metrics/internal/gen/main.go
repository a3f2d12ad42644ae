// SPDX-License-Identifier: Apache-2.0

// Command gen writes the tables of the reference page of metrics. It is run by go
// generate, with the path of the page.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/attune-hpc/attune/internal/metrics"
)

// The marks between which the page holds what is generated.
const (
	pageBegin = "<!-- begin metrics: generated from internal/metrics -->\n"
	pageEnd   = "<!-- end metrics -->\n"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen PAGE")
		return 2
	}
	page, err := os.ReadFile(os.Args[1])
	if err == nil {
		page, err = filledIn(page)
	}
	if err == nil {
		err = os.WriteFile(os.Args[1], page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		return 1
	}
	return 0
}

// filledIn returns the page with the tables as they are to be.
func filledIn(page []byte) ([]byte, error) {
	before, rest, begun := bytes.Cut(page, []byte(pageBegin))
	_, after, ended := bytes.Cut(rest, []byte(pageEnd))
	if !begun || !ended {
		return nil, fmt.Errorf("the page is without the lines %q and %q", pageBegin, pageEnd)
	}
	return bytes.Join([][]byte{before, []byte(pageBegin), tables(), []byte(pageEnd), after}, nil), nil
}

// tables returns a table for each part of the page.
func tables() []byte {
	var out bytes.Buffer
	own := map[metrics.Service][]*metrics.Metric{}
	for _, m := range metrics.All("") {
		own[m.Of] = append(own[m.Of], m)
	}
	part := func(title string, list []*metrics.Metric) {
		fmt.Fprintf(&out, "## %s\n\n| Metric | Type | Labels | What it is |\n|---|---|---|---|\n", title)
		for _, m := range list {
			help := m.Help
			if m.Sometimes != "" {
				help += " It is there " + m.Sometimes + "."
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels(m), help)
		}
		fmt.Fprintln(&out)
	}
	part("Both services", own[""])
	part("attuned", own[metrics.Node])
	part("Analyzer", own[metrics.Analyzer])
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// labels are those of a metric with their values.
func labels(m *metrics.Metric) string {
	var out []string
	if m.Of == "" {
		out = append(out, "`service`: "+string(metrics.Node)+", "+string(metrics.Analyzer))
	}
	for _, l := range m.Labels {
		one := "`" + l.Name + "`"
		if l.Values != nil {
			one += ": " + strings.Join(l.Values, ", ")
		}
		out = append(out, one)
	}
	return strings.Join(out, "; ")
}
