// SPDX-License-Identifier: Apache-2.0

// Command manual writes the pages of the manual: one for each command of attune, from
// the command itself, and those of attuned and of the configuration files, from
// docs/reference.
//
//	manual DOCS ATTUNED DIR
//
// DOCS is docs/reference, ATTUNED the program, and DIR gets man1, man5 and man8. The
// pages carry the date of SOURCE_DATE_EPOCH (seconds since 1970), if that is set.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/commands"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: manual DOCS ATTUNED DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "manual: %v\n", err)
		os.Exit(1)
	}
}

// write writes all pages below dir, whose earlier ones go.
func write(docs, attuned, dir string) error {
	date, err := day()
	if err != nil {
		return err
	}
	for _, section := range []string{"man1", "man5", "man8"} {
		folder := filepath.Join(dir, section)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
			return err
		}
	}
	root := commands.New(&cli.Env{})
	plain(root)
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Attune", Manual: "Attune"}
	if err := doc.GenManTree(root, header, filepath.Join(dir, "man1")); err != nil {
		return err
	}
	options, err := exec.Command(attuned, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("options of %s: %w: %s", attuned, err, options)
	}
	for _, p := range pages {
		if err := p.write(docs, dir, string(options), date.Format("Jan 2006")); err != nil {
			return err
		}
	}
	return nil
}

// plain leaves out who has made the pages.
func plain(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, child := range cmd.Commands() {
		plain(child)
	}
}

// day is the date of the pages.
func day() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
