// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// maxShebang is what the kernel reads of a script's first line.
	maxShebang = 256
	// maxScripts is how many scripts the kernel lets run one another.
	maxScripts = 5
)

// Script is what a script's first line says.
type Script struct {
	// Interpreter is the path behind #!.
	Interpreter string
	// Argument is the rest of the line, which the kernel hands over as one
	// argument; may be empty.
	Argument string
	// Program is what will run in the end: the interpreter, or what it names
	// where that is env(1) (looked up in PATH) or a script again.
	Program *Inspection
}

// readScript returns nil if the file does not begin with #!.
func readScript(file *os.File, depth int) *Script {
	head := make([]byte, maxShebang)
	n, _ := file.ReadAt(head, 0)
	s := parseShebang(head[:n])
	if s == nil || s.Interpreter == "" || depth >= maxScripts {
		return s
	}
	program := inspect(s.Interpreter, depth+1)
	if name := envProgram(s); name != "" {
		if path, err := exec.LookPath(name); err == nil {
			program = inspect(path, depth+1)
		} else {
			program = Inspection{Path: name, Kind: KindMissing, Detail: "not found in PATH"}
		}
	}
	s.Program = &program
	return s
}

// parseShebang parses "#! interpreter argument" as the kernel does: blanks and
// tabs separate, the first line counts, a NUL byte ends it.
func parseShebang(head []byte) *Script {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return nil
	}
	if end := bytes.IndexAny(line, "\n\x00"); end >= 0 {
		line = line[:end]
	}
	line = bytes.Trim(line, " \t")
	interpreter, argument := line, []byte(nil)
	if gap := bytes.IndexAny(line, " \t"); gap >= 0 {
		interpreter, argument = line[:gap], bytes.Trim(line[gap:], " \t")
	}
	return &Script{Interpreter: string(interpreter), Argument: string(argument)}
}

// envProgram returns the program that "#!/usr/bin/env [-S] [NAME=VALUE] PROGRAM"
// runs, "" if the interpreter is not env or it cannot be told.
func envProgram(s *Script) string {
	if filepath.Base(s.Interpreter) != "env" {
		return ""
	}
	words := []string{s.Argument}
	if rest, ok := strings.CutPrefix(s.Argument, "-S"); ok {
		words = strings.Fields(rest)
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}
