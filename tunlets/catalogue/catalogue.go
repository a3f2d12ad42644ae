// SPDX-License-Identifier: Apache-2.0

// Package catalogue lists the tunlets that come with Attune. They are one
// program, attune-tunlets, which is the tunlet whose name it is called by:
// attune-tunlet-malloc is a link to it. An Analyzer has it serve all of them, in one
// process for all sessions; it is built, installed and packed once.
package catalogue

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/tunlets/affinity"
	"github.com/attune-hpc/attune/tunlets/aggregation"
	"github.com/attune-hpc/attune/tunlets/congestion"
	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/factoring"
	"github.com/attune-hpc/attune/tunlets/malloc"
	"github.com/attune-hpc/attune/tunlets/mpiprogress"
	"github.com/attune-hpc/attune/tunlets/nagle"
	"github.com/attune-hpc/attune/tunlets/ompspin"
	"github.com/attune-hpc/attune/tunlets/ompthreads"
	"github.com/attune-hpc/attune/tunlets/searching"
	"github.com/attune-hpc/attune/tunlets/sockbuf"
	"github.com/attune-hpc/attune/tunlets/workers"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// files are the tunlets without code, NAME/NAME.tunlet.yaml each.
//
//go:embed */*.tunlet.yaml
var files embed.FS

// All returns what makes each tunlet by its name; a new tunlet needs a line here, or a file, only.
func All() map[string]func() sdk.Tunlet {
	tunlets := map[string]func() sdk.Tunlet{
		affinity.Name:    affinity.New,
		aggregation.Name: aggregation.New,
		congestion.Name:  congestion.New,
		factoring.Name:   factoring.New,
		malloc.Name:      malloc.New,
		mpiprogress.Name: mpiprogress.New,
		nagle.Name:       nagle.New,
		ompspin.Name:     ompspin.New,
		ompthreads.Name:  ompthreads.New,
		searching.Name:   searching.New,
		sockbuf.Name:     sockbuf.New,
		workers.Name:     workers.New,
	}
	paths, _ := fs.Glob(files, "*/*"+sdk.DeclarationSuffix) // the pattern is well formed
	for _, file := range paths {
		definition := sync.OnceValue(func() *declarative.Definition {
			text, _ := files.ReadFile(file) // it is there
			return declarative.Must(text)
		})
		tunlets[strings.TrimSuffix(path.Base(file), sdk.DeclarationSuffix)] = func() sdk.Tunlet { return definition().New() }
	}
	return tunlets
}

// Names lists the tunlets, sorted.
func Names() []string { return slices.Sorted(maps.Keys(All())) }

// New returns what makes the tunlet of a name; nil if there is none.
func New(name string) func() sdk.Tunlet { return All()[name] }
