// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlets is every tunlet that comes with Attune: the one whose
// name it is called by, as attune-tunlet-malloc. As attune-tunlet-declarative it is
// the one in the NAME.tunlet.yaml that is its argument. Called by its own name it
// makes these names.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const usage = `attune-tunlets holds the tunlets of Attune, which starts them by links to it.

  attune-tunlets list      list their names
  attune-tunlets link DIR  make the links in DIR, where attune-tunlets is
`

func main() {
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), sdk.ProgramPrefix); ok {
		if newTunlet := catalogue.New(name); newTunlet != nil {
			sdk.Serve(newTunlet)
			return
		}
		if name == sdk.Interpreter {
			os.Exit(interpret(os.Args[1:]))
		}
	}
	os.Exit(run(os.Args[1:]))
}

// run is what people and the installation call.
func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == sdk.ServeArgument:
		sdk.ServePackage(catalogue.All())
	case len(args) == 1 && args[0] == "list":
		fmt.Println(strings.Join(catalogue.Names(), "\n"))
		return 0
	case len(args) == 2 && args[0] == "link":
		if err := catalogue.Link(args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "attune-tunlets: link: %v\n", err)
			return 1
		}
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// interpret is the tunlet in a file, which may be the copy of another one.
func interpret(args []string) int {
	if len(args) != 1 && len(args) != 2 {
		fmt.Fprintln(os.Stderr, "want a NAME"+sdk.DeclarationSuffix+"; attune starts this program for each that it finds")
		return sdk.RefusedExitCode
	}
	definition, err := declarative.Read(args[0], args[len(args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return sdk.RefusedExitCode
	}
	sdk.Serve(definition.New)
	return 0
}
