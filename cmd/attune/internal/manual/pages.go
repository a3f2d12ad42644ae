// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// page is a page of the manual that a page of docs/reference becomes.
type page struct {
	name    string
	section int
	title   string // what it is, in a line
	source  string // below docs/reference
	heading string // only what is below this one; empty: all
}

// pages are those of what attune's commands do not say of themselves.
var pages = []page{
	{name: service, section: 8, title: "Application Controller of a node", source: "attuned.md"},
	{name: "attuned.yaml", section: 5, title: "settings of attuned", source: "attuned.md", heading: "Settings"},
	{name: "attune-analyzer.yaml", section: 5, title: "settings of the Analyzer, /etc/attune/analyzer.yaml", source: "analyzer.md", heading: "Settings"},
	{name: "attune-policy.yaml", section: 5, title: "what may be changed on a node, /etc/attune/policy.yaml", source: "policy.md"},
}

// service is the command whose options are what its --help says.
const service = "attuned"

// write writes the page below dir, with the options of its command, if it is one.
func (p page) write(docs, dir, options, date string) error {
	text, err := os.ReadFile(filepath.Join(docs, p.source))
	if err != nil {
		return err
	}
	body, err := p.body(string(text))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%% %q %q %q\n\n# NAME\n%s - %s\n\n", strings.ToUpper(p.name), fmt.Sprint(p.section), date, p.name, p.title)
	if p.name == service {
		fmt.Fprintf(&b, "# SYNOPSIS\n**%s** [*OPTION*]...\n\n# OPTIONS\n```\n%s\n```\n\n", p.name, strings.TrimRight(options, "\n"))
	}
	fmt.Fprintf(&b, "# DESCRIPTION\n%s\n", body)
	file := filepath.Join(dir, fmt.Sprintf("man%d", p.section), fmt.Sprintf("%s.%d", p.name, p.section))
	return os.WriteFile(file, md2man.Render(b.Bytes()), 0o644)
}

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	topmost  = regexp.MustCompile(`(?m)^# .*\n+`)
	nearLink = regexp.MustCompile(`\[([^\]]+)\]\(([^):]*)\)`)
)

// body is the page's text without its title, and with links to other pages of the
// documentation as their words.
func (p page) body(text string) (string, error) {
	text = topmost.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	if p.heading != "" {
		_, below, found := strings.Cut(text, "\n## "+p.heading+"\n")
		if !found {
			return "", fmt.Errorf("%s has no heading %q", p.source, p.heading)
		}
		text, _, _ = strings.Cut(below, "\n## ")
	}
	return listed(nearLink.ReplaceAllString(text, "$1")), nil
}
