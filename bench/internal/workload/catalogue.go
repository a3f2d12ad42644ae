// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Catalogue finds and builds the programs.
type Catalogue struct {
	// Sources is the folder of the workloads' sources.
	Sources string
	// Cache is the folder for what is built.
	Cache string
}

// Repository is the catalogue for commands that run at the top of the repository.
var Repository = Catalogue{Sources: "bench/workloads", Cache: ".cache/bench"}

// DebianPython is the interpreter that Debian's numpy belongs to; another one
// may come first in PATH.
const DebianPython = "/usr/bin/python3"

// ProbedCalls returns a program that prints what calls of its functions cost,
// compiled with one more option if it is not empty.
func (c Catalogue) ProbedCalls(ctx context.Context, option string) (string, error) {
	flags := []string{"-fno-builtin", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-pthread"}
	if option != "" {
		c.Cache = filepath.Join(c.Cache, strings.TrimLeft(option, "-"))
		flags = append(flags, option, "-I", c.Sources)
	}
	if option == "-DTRACEPOINT" {
		flags = append(flags, "-llttng-ust", "-ldl")
	}
	return c.Compile(ctx, "probed_calls", flags...)
}

// ManyFunctions returns a program that calls a hundred functions of its own and
// a hundred of a library beside it all the time.
func (c Catalogue) ManyFunctions(ctx context.Context) (string, error) {
	c.Cache = filepath.Join(c.Cache, "many")
	library, err := c.Compile(ctx, "many_library", "-shared", "-fPIC", "-Wl,-soname,libmany.so")
	if err != nil {
		return "", err
	}
	named := filepath.Join(c.Cache, "libmany.so")
	if err := os.Rename(library, named); err != nil {
		return "", err
	}
	return c.Compile(ctx, "many_functions", named, "-Wl,-rpath,$ORIGIN")
}

// ManyCalls is python using many of its own functions all the time.
func (c Catalogue) ManyCalls() []string {
	return []string{DebianPython, c.source("many_calls.py")}
}

func (c Catalogue) source(name string) string { return filepath.Join(c.Sources, name) }

// MissingCommand says that a program is not in PATH, and which package has it;
// empty when it is there.
func MissingCommand(command, debianPackage string) string {
	if _, err := exec.LookPath(command); err != nil {
		return fmt.Sprintf("%s is not installed (apt-get install %s)", command, debianPackage)
	}
	return ""
}

// MissingModule reports whether Debian's Python lacks a module.
func MissingModule(ctx context.Context, module string) bool {
	return exec.CommandContext(ctx, DebianPython, "-c", "import "+module).Run() != nil
}

// compilers are those that programs are built with, and their packages.
var compilers = map[string]string{"gcc": "gcc", "mpicc.openmpi": "libopenmpi-dev", "mpicc.mpich": "libmpich-dev", "clang-14": "clang-14", "go": "golang-go"}

// Build compiles a program of Sources into Cache, and says why it cannot; empty
// when it has. It is in C but for the compiler go. The compiler is gcc, and the program has the name of its
// source, unless they are given.
func (c Catalogue) Build(ctx context.Context, compiler, source, as string, flags ...string) (missing string) {
	compiler, as = cmp.Or(compiler, "gcc"), cmp.Or(as, source)
	if missing := MissingCommand(compiler, compilers[compiler]); missing != "" {
		return missing
	}
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return err.Error()
	}
	args := append([]string{"-O2", "-o", filepath.Join(c.Cache, as), c.source(source + ".c")}, flags...)
	if compiler == "go" {
		args = append(append([]string{"build", "-o", filepath.Join(c.Cache, as)}, flags...), c.source(source+".go"))
	}
	if out, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return fmt.Sprintf("%s: %v: %s", compiler, err, out)
	}
	return ""
}

// Compile builds a program in C with gcc and returns its path.
func (c Catalogue) Compile(ctx context.Context, source string, flags ...string) (string, error) {
	if missing := c.Build(ctx, "", source, "", flags...); missing != "" {
		return "", fmt.Errorf("compile the program: %s", missing)
	}
	return filepath.Join(c.Cache, source), nil
}
