// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"path/filepath"
	"regexp"
	"strings"
)

// maxPattern bounds the length of a pattern, bytes.
const maxPattern = 300

var (
	number    = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)[kKMGTP]?(i?[bB])?$`)
	digits    = regexp.MustCompile(`[0-9]+`)
	extension = regexp.MustCompile(`^\.[A-Za-z][A-Za-z0-9]{0,9}$`)
)

// packed are the endings of names that say nothing of what is in a file.
var packed = map[string]bool{".gz": true, ".bz2": true, ".xz": true, ".zst": true, ".lz4": true}

// Pattern returns a command line in which what differs from task to task of one kind is
// left out: numbers become #, names of files * with their ending. The program is its name
// without folders. Options keep their names. Long patterns are cut off.
func Pattern(command []string) string {
	if len(command) == 0 {
		return ""
	}
	words := []string{filepath.Base(command[0])}
	for _, arg := range command[1:] {
		words = append(words, normalize(arg))
	}
	pattern := strings.Join(words, " ")
	if len(pattern) > maxPattern {
		pattern = strings.ToValidUTF8(pattern[:maxPattern], "") + "…"
	}
	return pattern
}

// normalize returns an argument without what is its task's own.
func normalize(arg string) string {
	switch {
	case number.MatchString(arg):
		return "#"
	case strings.HasPrefix(arg, "-"):
		name, value, has := strings.Cut(arg, "=")
		if has {
			return name + "=" + normalize(value)
		}
		return digits.ReplaceAllString(arg, "#")
	}
	stem, tail := arg, ""
	if packed[filepath.Ext(arg)] {
		tail = filepath.Ext(arg)
		stem = strings.TrimSuffix(arg, tail)
	}
	ending := filepath.Ext(stem)
	if !extension.MatchString(ending) || len(ending) == len(stem) {
		ending = ""
	}
	switch {
	case strings.ContainsAny(arg, "\n\t"):
		return "…" // a script in an argument
	case ending+tail != "":
		return "*" + ending + tail
	case strings.Contains(arg, "/"):
		return "*"
	}
	return digits.ReplaceAllString(arg, "#")
}
