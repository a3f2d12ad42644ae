// SPDX-License-Identifier: Apache-2.0

// Package skeleton makes new tunlets: a small one that is complete, in Go or in
// YAML, under a name of the author's. What is copied is package program beside
// it, which is compiled, tested and linted like any other, and tunlet.yaml.
//
// The tunlet is about programs that write little at a time and have a global
// variable for how much. That is simple, and it works: the author changes it
// step by step into what is wanted, and has something that runs all the time.
package skeleton

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

//go:embed program/*.go program.tunlet.yaml
var files embed.FS

// modules are the modules, a line each, that the SDK and its tests are built of: a tunlet needs
// no other one of Attune's. A test makes and compares it (-update).
//
//go:embed modules.txt
var modules string

const (
	// module is Attune's.
	module = "github.com/attune-hpc/attune"
	// placeholder stands for the name in the files.
	placeholder = "small-writes"
)

// ErrName says that a name is none for a tunlet.
var ErrName = errors.New("a tunlet's name has lower case letters, digits and hyphens, and begins with a letter")

// CheckName returns [ErrName] for what is no name.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`).MatchString(name) || name == sdk.Interpreter {
		return fmt.Errorf("%q: %w", name, ErrName)
	}
	return nil
}

// WriteYAML makes NAME.tunlet.yaml in a directory, and returns its path. A file
// that is there already is left alone: the error wraps fs.ErrExist.
func WriteYAML(dir, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	content, err := files.ReadFile("program.tunlet.yaml")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+sdk.DeclarationSuffix)
	return path, write(path, named(content, name))
}

// Source says where a new Go tunlet has Attune's SDK from.
type Source struct {
	// Checkout is a directory with Attune's source, which the tunlet is built
	// against; empty: the version below is fetched.
	Checkout string
	// Version of Attune's module, as v1.2.3.
	Version string
}

// WriteGo makes a directory NAME below dir with a Go program, and returns its
// path. A directory that is there already is left alone: the error wraps
// fs.ErrExist.
func WriteGo(dir, name string, from Source) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	goMod, goSum, err := from.module(name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		return "", err
	}
	entries, err := fs.ReadDir(files, "program")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		content, err := files.ReadFile("program/" + e.Name())
		if err != nil {
			return "", err
		}
		if err := write(filepath.Join(path, e.Name()), named(content, name)); err != nil {
			return "", err
		}
	}
	return path, errors.Join(write(filepath.Join(path, "go.mod"), goMod), writeUnlessEmpty(filepath.Join(path, "go.sum"), goSum))
}

// module returns the go.mod and go.sum of a new program. With a checkout its modules
// have the checkout's versions, so that nothing needs to be looked up.
func (s Source) module(name string) (goMod, goSum []byte, err error) {
	if s.Checkout == "" {
		return fmt.Appendf(nil, "module %s\n\ngo 1.26\n\nrequire %s %s\n", name, module, s.Version), nil, nil
	}
	path := filepath.Join(s.Checkout, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if goSum, err = os.ReadFile(filepath.Join(s.Checkout, "go.sum")); err != nil {
		return nil, nil, err
	}
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		return nil, nil, err
	}
	if file.Module == nil || file.Module.Mod.Path != module {
		return nil, nil, fmt.Errorf("%s is not Attune's source: its go.mod is not of module %s", s.Checkout, module)
	}
	goMod, err = s.rename(file, name)
	return goMod, goSum, err
}

// rename makes the go.mod of the checkout that of a program which requires it, without what a
// tunlet does not need.
func (s Source) rename(file *modfile.File, name string) ([]byte, error) {
	err := file.AddModuleStmt(name)
	wanted := strings.Fields(modules)
	for _, r := range slices.Clone(file.Require) {
		if !slices.Contains(wanted, r.Mod.Path) {
			err = errors.Join(err, file.DropRequire(r.Mod.Path))
		}
	}
	err = errors.Join(err, file.AddRequire(module, "v0.0.0"), file.AddReplace(module, "", s.Checkout, ""))
	if err != nil {
		return nil, err
	}
	file.Cleanup()
	return file.Format()
}

// named puts the name in the place of the placeholder.
func named(content []byte, name string) []byte {
	return []byte(strings.ReplaceAll(string(content), placeholder, name))
}

// write makes a new file.
func write(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func writeUnlessEmpty(path string, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	return write(path, content)
}
