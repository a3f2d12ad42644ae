// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// analyzerID returns the id by which the registry knows the Analyzer with a state
// directory on a host. The directory keeps it: an Analyzer that starts again,
// after kill -9 too, has its registrations again at once, and need not wait until
// it is believed dead. The caller has locked the directory. A copy of it on
// another host has another id. With an error the id is good, and not kept.
func analyzerID(dir, host string) (string, error) {
	prefix := idText(host) + "-"
	path := filepath.Join(dir, "id")
	text, _ := os.ReadFile(path) // what cannot be read is written anew
	id := strings.TrimSpace(string(text))
	if strings.HasPrefix(id, prefix) && len(id) > len(prefix) && idText(id) == id {
		return id, nil
	}
	id = prefix + strings.ToLower(rand.Text()[:8])
	return id, os.WriteFile(path, []byte(id+"\n"), 0o600)
}

// idText is a text with what ids have only.
func idText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, text)
}
