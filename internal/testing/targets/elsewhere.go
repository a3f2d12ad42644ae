// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// elsewherePatience is for a machine that gives who compiles no time.
	elsewherePatience = 2 * time.Minute
	elsewhereInterval = 20 * time.Millisecond
)

var errNotCompiled = errors.New("not compiled elsewhere")

// compileElsewhere has a program compiled by somebody who looks for files called ask below
// a folder, runs each with sh, with the path that its folder has there in $OUT, and then
// makes a file done beside it. This checkout has the same path there.
func compileElsewhere(folder, compiler string, arguments []string) ([]byte, error) {
	dir, err := os.MkdirTemp(folder, "")
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	command := []string{"cd", quoted(here), "&&", quoted(compiler), "-o", `"$OUT"/program`}
	for i, argument := range arguments {
		word := quoted(argument)
		if strings.HasSuffix(argument, ".c") && strings.HasPrefix(argument, os.TempDir()) { // nobody else sees it there
			source := filepath.Join(fmt.Sprint(i), filepath.Base(argument))
			if err := copySource(filepath.Join(dir, source), argument); err != nil {
				return nil, err
			}
			word = `"$OUT"/` + quoted(source)
		}
		command = append(command, word)
	}
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask+".new", []byte(strings.Join(command, " ")+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(ask+".new", ask); err != nil {
		return nil, err
	}
	for end := time.Now().Add(elsewherePatience); time.Now().Before(end); time.Sleep(elsewhereInterval) {
		if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
			return os.ReadFile(filepath.Join(dir, "program"))
		}
	}
	return nil, errNotCompiled
}

// quoted is a word of the shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// copySource copies a file, with the headers that lie beside it.
func copySource(to, from string) error {
	headers, err := filepath.Glob(filepath.Join(filepath.Dir(from), "*.h"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	for _, file := range append(headers, from) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(to), filepath.Base(file)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
