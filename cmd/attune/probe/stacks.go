// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/probe/probeview"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/flame"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/outfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stackFiles are where the stacks of a watch go when it ends.
type stackFiles struct {
	foldedName, flameName string
	folded, flame         outfile.Place
	began                 time.Time
}

func (s *stackFiles) declare(flags *pflag.FlagSet) {
	flags.StringVar(&s.foldedName, "folded", "", "at the end write the stacks of points that are kept apart \"by stack\" into `FILE`, as the folded lines that flame graph tools read")
	flags.StringVar(&s.flameName, "flame", "", "at the end write them into `FILE` as flame graphs, a page for a browser")
}

// open opens the files that are wanted; the caller closes them.
func (s *stackFiles) open(points []*attunev1.MeasurePoint) (err error) {
	if s.foldedName == "" && s.flameName == "" {
		return nil
	}
	s.began = time.Now()
	stacks := len(points) == 0 // those that were added are not known yet
	for _, p := range points {
		stacks = stacks || hits.ByStack(p)
	}
	if !stacks {
		return exitcode.UsageError(errors.New("--folded and --flame want stacks, and no point has any"), "write one as in: libc.so.6:malloc by stack")
	}
	if s.folded, err = cli.OpenPlace("folded", s.foldedName); err != nil {
		return err
	}
	s.flame, err = cli.OpenPlace("flame", s.flameName)
	return err
}

// write writes what was seen.
func (s *stackFiles) write(printer *probeview.Printer) error {
	graphs := printer.Graphs()
	folded := s.folded.Write(func(to io.Writer) error {
		var errs []error
		for _, g := range graphs {
			errs = append(errs, flame.Fold(to, g.Stacks))
		}
		return errors.Join(errs...)
	})
	page := &flame.Page{
		Title: "Stacks of " + printer.Programs(), Graphs: graphs,
		Remark: fmt.Sprintf("Seen from %s for %v, by attune probe watch.", s.began.Format(time.DateTime), time.Since(s.began).Round(time.Second)),
	}
	return errors.Join(folded, s.flame.Write(page.Write))
}

func (s *stackFiles) close() { _ = errors.Join(s.folded.Close(), s.flame.Close()) } // what was written is written
