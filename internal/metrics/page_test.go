// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/golden"
)

// The reference page is made from the table that the code goes by.
func TestPage(t *testing.T) {
	golden.Part(t, "../../docs/reference/metrics.md", "metrics", "internal/metrics", tables())
}

// tables returns a table for each part of the page.
func tables() []byte {
	var out bytes.Buffer
	own := map[Service][]*Metric{}
	for _, m := range All("") {
		own[m.Of] = append(own[m.Of], m)
	}
	part := func(title string, list []*Metric) {
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
	part("attuned", own[Node])
	part("Analyzer", own[Analyzer])
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// labels are those of a metric with their values.
func labels(m *Metric) string {
	var out []string
	if m.Of == "" {
		out = append(out, "`service`: "+string(Node)+", "+string(Analyzer))
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
