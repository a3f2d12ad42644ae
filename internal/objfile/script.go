// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxShebang is what the kernel reads of a script's first line.
	maxShebang = 256
	// maxScripts is how many scripts the kernel lets run one another.
	maxScripts = 5
)

// parseShebang parses "#! interpreter argument" as the kernel does: blanks and
// tabs separate, the first line counts, a NUL byte ends it.
func parseShebang(head []byte) (interpreter, argument string, ok bool) {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return "", "", false
	}
	if end := bytes.IndexAny(line, "\n\x00"); end >= 0 {
		line = line[:end]
	}
	line = bytes.Trim(line, " \t")
	if gap := bytes.IndexAny(line, " \t"); gap >= 0 {
		return string(line[:gap]), string(bytes.Trim(line[gap:], " \t")), true
	}
	return string(line), "", true
}

// envProgram returns the program that "#!/usr/bin/env [-S] [NAME=VALUE] PROGRAM"
// runs, "" if the interpreter is not env or it cannot be told.
func envProgram(interpreter, argument string) string {
	if filepath.Base(interpreter) != "env" {
		return ""
	}
	plain := []string{"-i", "-", "-v", "--ignore-environment", "--debug"}
	words := []string{argument}
	if rest, ok := strings.CutPrefix(argument, "-S"); ok {
		words = strings.Fields(rest)
	}
	for _, word := range words {
		switch option := strings.HasPrefix(word, "-"); {
		case strings.ContainsAny(word, `"'\`), option && !strings.HasPrefix(word, "--unset=") && !slices.Contains(plain, word):
			return "" // it may be that a name, a directory, or the rest of a word follows
		case option || strings.Contains(word, "="):
		case strings.Contains(word, "$"):
			return ""
		default:
			return word
		}
	}
	return ""
}
