// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/packfile"
)

const unpackLong = `Unpack shows what is in a packed program, or takes it out. Every byte is checked
before.

--list prints a line for each part: what it is, its name, its size, and its size
in the file. --extract writes the parts, or those that are named, into a
directory that it makes if need be; files that are there are not replaced.`

const unpackExample = `  attune unpack --list solver.tuned
  attune unpack --extract parts solver.tuned
  attune unpack --extract . solver.tuned solver`

// Unpack returns `attune unpack`.
func Unpack(p *cli.Env) *cobra.Command {
	var list bool
	var extract string
	cmd := &cobra.Command{
		Use:               "unpack {--list | --extract DIR} FILE [PART...]",
		Short:             "Show or take out what is in a packed program",
		Long:              unpackLong,
		Example:           unpackExample,
		ValidArgsFunction: cli.CompleteCommand,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || list == (extract != "") {
				return exitcode.UsageError(errors.New("one of --list and --extract, and a packed program, are needed"),
					"write: attune unpack --list FILE")
			}
			return unpack(p, args[0], extract, args[1:])
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the parts")
	cmd.Flags().StringVar(&extract, "extract", "", "write the parts into `DIR`")
	return cmd
}

// unpack lists the parts, or extracts them into a directory if that is not
// empty.
func unpack(p *cli.Env, path, dir string, wanted []string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	packed, err := ReadPacked(file)
	if err != nil {
		return err
	}
	if err := packed.Verify(); err != nil {
		return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s: %w", path, err), Remedy: "copy it again, or pack it anew"}
	}
	parts, err := pickParts(packed.Parts, wanted)
	if err != nil {
		return err
	}
	if dir == "" {
		return listParts(p, packed, parts)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, part := range parts {
		if err := extractTo(packed, part, filepath.Join(dir, part.Name)); err != nil {
			return err
		}
	}
	return nil
}

// pickParts returns the parts of these names, or all.
func pickParts(parts []packfile.Part, wanted []string) (picked []packfile.Part, err error) {
	if len(wanted) == 0 {
		return parts, nil
	}
	for _, name := range wanted {
		i := slices.IndexFunc(parts, func(part packfile.Part) bool { return part.Name == name })
		if i < 0 {
			return nil, exitcode.UsageError(fmt.Errorf("no part %q", name), "`attune unpack --list` shows them")
		}
		picked = append(picked, parts[i])
	}
	return picked, nil
}

func listParts(p *cli.Env, packed *packfile.File, parts []packfile.Part) error {
	fmt.Fprintf(p.Stdout, "packed by attune %s for %v\n", packed.Attune, packed.Machine)
	w := cli.Table(p.Stdout)
	for _, part := range parts {
		fmt.Fprintf(w, "%v\t%s\t%d bytes\t%d in the file\n", part.Kind, part.Name, part.Size, part.StoredSize)
	}
	return w.Flush()
}
