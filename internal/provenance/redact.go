// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"regexp"
	"slices"
	"strings"
)

// Hidden stands for what may be a secret.
const Hidden = "[redacted]"

var (
	secretNames = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "KEY", "AUTH", "COOKIE", "SIGNATURE"}
	secretEnds  = []string{"PASS", "_PWD", "_PW", "_PAT", "_SAS", "_DSN"}
	tokens      = regexp.MustCompile(`-----BEGIN|\b(gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk-|hf_)[A-Za-z0-9_-]{10}|\b(AKIA|ASIA)[A-Z0-9]{12}|\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.`)
	passwords   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:]*:)[^/\s]*@`)
)

// redact returns the environment, NAME=VALUE each, without what may be a secret, and
// the names of which something was left out, sorted.
func redact(environment []string) (variables map[string]string, names []string) {
	variables = make(map[string]string, len(environment))
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		shown := redacted(name, value)
		if shown != value {
			names = append(names, name)
		}
		variables[name] = strings.ToValidUTF8(shown, "\uFFFD")
	}
	slices.Sort(names)
	return variables, slices.Compact(names)
}

func redacted(name, value string) string {
	upper := strings.ToUpper(name)
	contains := func(part string) bool { return strings.Contains(upper, part) }
	ends := func(part string) bool { return strings.HasSuffix(upper, part) }
	if value != "" && (slices.ContainsFunc(secretNames, contains) || slices.ContainsFunc(secretEnds, ends) || tokens.MatchString(value)) {
		return Hidden
	}
	return passwords.ReplaceAllString(value, "${1}"+Hidden+"@")
}
