// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account/crate"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/imports"
	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// maxImport bounds a file that is imported, bytes.
const maxImport = 2 << 30

func newImport(p *cli.Env) *cobra.Command {
	var format, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [flags] FILE...",
		Short: "Add accounts that other tools have written",
		Long: `Import adds the tasks of files; - is standard input. Formats are

  attune     what attune account --json and attune archive export have written
  cctools    summaries of resource_monitor
  kickstart  records of pegasus-kickstart, schema 3.0
  slurm      the output of sacct --parsable2
  nextflow   traces of Nextflow, with tabs or commas
  time       the output of GNU time -v

and are told by what is in a file. All files are imported or none; a task that is in
the archive already is not added again.`,
		Example: "  sacct --parsable2 --format=ALL --starttime=now-30days | attune archive import -\n" +
			"  attune archive import --format nextflow trace.txt",
		Args: cli.Arguments(1, cli.Any),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "" && !slices.Contains(imports.Formats(), format) {
				return exitcode.UsageError(fmt.Errorf("--format: %q is unknown", format), "there are "+strings.Join(imports.Formats(), ", "))
			}
			tasks, skipped, err := readAll(args, format)
			if err != nil {
				return err
			}
			for _, t := range tasks {
				if name != "" {
					t.Name = name
				}
			}
			return withArchive(cmd, func(s *archive.Store) error {
				added, err := s.Add(cmd.Context(), tasks...)
				if err != nil {
					return err
				}
				return writeAdded(p, added, skipped, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`NAME` of the format: "+strings.Join(imports.Formats(), ", "))
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the category of all these tasks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.MustComplete(cmd, "format", imports.Formats)
	return cmd
}

// readAll reads all files before anything is added.
func readAll(paths []string, format string) (tasks []*archive.Task, skipped map[string]int, err error) {
	skipped = make(map[string]int)
	for _, path := range paths {
		result, err := readFile(path, format)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, result.Tasks...)
		for reason, n := range result.Skipped {
			skipped[reason] += n
		}
	}
	return tasks, skipped, nil
}

func readFile(path, format string) (imports.Result, error) {
	file, f := os.Stdin, imports.File{Name: "standard input", Changed: time.Now(), Local: time.Local}
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return imports.Result{}, exitcode.UsageError(err, "nothing was imported; name files that can be read")
		}
		defer file.Close()
		f.Name = path
		if info, err := file.Stat(); err == nil {
			f.Changed = info.ModTime()
		}
	}
	var err error
	if f.Text, err = bounded.ReadAll(f.Name, file, maxImport); err != nil {
		return imports.Result{}, fmt.Errorf("%w; nothing was imported", err)
	}
	return imports.Read(format, f)
}

func writeAdded(p *cli.Env, added archive.Added, skipped map[string]int, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(struct {
			archive.Added
			Skipped map[string]int `json:"skipped"`
		}{added, skipped})
	}
	fmt.Fprintf(p.Stdout, "added: %d\n", added.New)
	if added.Known > 0 {
		fmt.Fprintf(p.Stdout, "were there already: %d\n", added.Known)
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(p.Stdout, "left out, since the task %s: %d\n", reason, skipped[reason])
	}
	if added.Forgotten > 0 {
		fmt.Fprintf(p.Stdout, "the oldest, removed for want of room: %d\n", added.Forgotten)
	}
	return nil
}

func newExport(p *cli.Env) *cobra.Command {
	var of pick
	var output, format string
	cmd := &cobra.Command{
		Use:   "export [flags] [CATEGORY]",
		Short: "Write tasks as lines of JSON",
		Long: `Export writes a line of JSON for each task, with its whole account, the latest first.
attune archive import reads them again, in another archive too.

With --format ro-crate it writes the description of an RO-Crate (Process Run Crate 0.5), in which
each task is an action; tasks that were accounted for with --provenance have their files there.`,
		Example:           "  attune archive export --output tasks.jsonl\n  attune archive export --format ro-crate --output ro-crate-metadata.json align\n  attune archive export align | jq .account.wall_seconds",
		Args:              cli.Arguments(0, 1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format != formatLines && format != formatCrate {
				return exitcode.UsageError(fmt.Errorf("--format: %q is unknown", format), "name one of: "+strings.Join(exportFormats(), ", "))
			}
			place, err := cli.OpenPlace("output", output)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, place.Close()) }()
			return withArchive(cmd, func(s *archive.Store) error {
				var leftOut error // of what could not be read; the others are there
				write := func(out io.Writer) (err error) {
					leftOut, err = export(cmd, s, of.filter(args), out, format)
					return err
				}
				var err error
				if place.Named() {
					err = place.Write(write)
				} else {
					err = write(p.Stdout)
				}
				return errors.Join(err, leftOut)
			})
		},
	}
	of.add(cmd)
	cmd.Flags().StringVar(&format, "format", formatLines, "`NAME` of the format: "+strings.Join(exportFormats(), ", "))
	cli.MustComplete(cmd, "format", exportFormats)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`")
	return cmd
}

// Formats of an export.
const formatLines, formatCrate = "attune", "ro-crate"

func exportFormats() []string { return []string{formatLines, formatCrate} }

// export writes tasks. leftOut says which ones could not be read, err why what was written is not whole.
func export(cmd *cobra.Command, s *archive.Store, f archive.Filter, out io.Writer, format string) (leftOut, err error) {
	if format == formatCrate {
		return exportCrate(cmd, s, f, out)
	}
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	leftOut, err = eachReadable(cmd, s, f, func(_ string, t *archive.Task) error { return encoder.Encode(t) })
	return leftOut, errors.Join(err, buffered.Flush())
}

// exportCrate writes the description of a crate with all tasks.
func exportCrate(cmd *cobra.Command, s *archive.Store, f archive.Filter, out io.Writer) (leftOut, err error) {
	var runs []crate.Run
	leftOut, err = eachReadable(cmd, s, f, func(id string, t *archive.Task) error {
		t.Account.Tree = nil // no part of the description, and by far the largest of an account
		runs = append(runs, crate.Run{ID: id, Account: &t.Account})
		return nil
	})
	if err != nil {
		return leftOut, err
	}
	text, err := crate.Metadata(crate.Options{}, runs...)
	switch {
	case errors.Is(err, crate.ErrEmpty) && leftOut != nil: // there are tasks
		return nil, leftOut
	case errors.Is(err, crate.ErrEmpty):
		return nil, &exitcode.Error{Code: exitcode.Usage, Err: err, Remedy: "see attune archive list for what there is"}
	case err != nil:
		return leftOut, err
	}
	_, err = out.Write(text)
	return leftOut, err
}

// eachReadable is [archive.Store.EachTask], which returns apart what it says of tasks that it has left out.
func eachReadable(cmd *cobra.Command, s *archive.Store, f archive.Filter, do func(string, *archive.Task) error) (leftOut, err error) {
	if err = s.EachTask(cmd.Context(), f, do); errors.Is(err, archive.ErrUnreadable) {
		return err, nil
	}
	return nil, err
}
