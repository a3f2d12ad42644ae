// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
)

// missingInterpreter returns an error if what runs a program that did not start is not there:
// for the kernel, which says so of the program itself, or for the env of its first line.
// named is the path that people know the program by.
func missingInterpreter(program, named string) error {
	i := objfile.Inspect(program)
	switch {
	case i.Script != nil && filepath.Base(i.Script.Interpreter) == "env":
		name := i.Script.EnvProgram()
		if name == "" || inPath(name) {
			return nil
		}
		return fmt.Errorf("there is no %s in %s, by which it is run; install that, or name another program in the first line of %s: %w", name, tunletPath, named, errPermanent)
	case i.Script != nil && !exists(i.Script.Interpreter):
		return fmt.Errorf("there is no %s, by which it is run; install that, or name another program in the first line of %s: %w", i.Script.Interpreter, named, errPermanent)
	case i.Interpreter != "" && !exists(i.Interpreter):
		return fmt.Errorf("there is no %s, which loads it; install the C library that %s was built for, or build it for this machine: %w", i.Interpreter, named, errPermanent)
	}
	return nil
}

// exists says whether a path leads to a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// inPath says whether a tunlet finds a program.
func inPath(name string) bool {
	if strings.Contains(name, "/") {
		return exists(name)
	}
	for dir := range strings.SplitSeq(tunletPath, ":") {
		if exists(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}
