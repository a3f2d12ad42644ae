// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Names remembers what names in debug information stand for. To read it takes
// seconds for a large program, and all ranks of a node run the same.
type Names struct {
	mu    sync.Mutex // guards known; held while debug information is read
	known map[nameKey]nameAnswer
}

// nameKey is a path at a function of a file.
type nameKey struct {
	file   objfile.FileVersion
	offset uint64
	path   string
}

type nameAnswer struct {
	capture *attunev1.Capture // source, type and dereference; nil with err
	err     error
}

// maxNames bounds what is remembered.
const maxNames = 4096

// Named returns the point with every path replaced by what it stands for in the
// images that are mapped; the point itself if there is none.
func (n *Names) Named(spec *attunev1.MeasurePoint, mapped func() ([]objfile.Image, error)) (*attunev1.MeasurePoint, error) {
	if !slices.ContainsFunc(spec.GetCaptures(), byName) {
		return spec, nil
	}
	if spec.GetFunction() == nil {
		return nil, fmt.Errorf("%w: only functions have debug information that says where", errNames)
	}
	images, err := mapped()
	if err != nil {
		return nil, err
	}
	out := proto.CloneOf(spec)
	captures := slices.DeleteFunc(slices.Clone(out.GetCaptures()), func(c *attunev1.Capture) bool { return !byName(c) })
	found, err := n.lookUp(images, spec.GetFunction(), captures)
	if err != nil {
		return nil, err
	}
	for i, c := range captures {
		c.Source, c.Type, c.Dereference = found[i].GetSource(), found[i].GetType(), found[i].GetDereference()
	}
	return out, nil
}

func byName(c *attunev1.Capture) bool { return c.GetPath() != "" }

// lookUp finds what the paths of captures stand for at the functions of a target, which
// must be the same for all of them.
func (n *Names) lookUp(images []objfile.Image, target *attunev1.FunctionTarget, captures []*attunev1.Capture) ([]*attunev1.Capture, error) {
	found := make([]*attunev1.Capture, len(captures))
	for _, image := range images {
		if !Watched(image, target.GetObject()) {
			continue
		}
		if err := n.inImage(image, target.GetSymbols(), captures, found); err != nil {
			return nil, err
		}
	}
	if slices.Contains(found, nil) {
		return nil, fmt.Errorf("%w: no object defines %s", objfile.ErrNoSymbol, TargetName(target))
	}
	return found, nil
}

// inImage looks at the functions of one image, if it has any, and adds to what others
// have found.
func (n *Names) inImage(image objfile.Image, patterns []string, captures, found []*attunev1.Capture) error {
	file, err := image.Open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	functions, err := FunctionsIn(file, patterns)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	reader := &nameReader{file: file, image: image}
	for i, capture := range captures {
		for _, f := range functions {
			at, err := n.ask(reader, f, capture.GetPath())
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", capture.GetPath(), err)
			case found[i] != nil && !proto.Equal(found[i], at):
				return fmt.Errorf("%s: %w: the functions that match do not agree on what it is", capture.GetPath(), errNames)
			}
			found[i] = at
		}
	}
	return nil
}

// ask answers from memory, or reads. A variable is that of the file which is mapped: others
// may have its base name. The caller holds mu.
func (n *Names) ask(reader *nameReader, f objfile.Symbol, path string) (*attunev1.Capture, error) {
	capture, err := n.remembered(reader, f, path)
	if err != nil || capture.GetGlobal() == nil {
		return capture, err
	}
	capture = proto.CloneOf(capture)
	capture.GetGlobal().Object = symname.Escape(reader.image.Path)
	return capture, nil
}

// remembered leaves the object of a variable open: a file may have several paths. The
// caller holds mu.
func (n *Names) remembered(reader *nameReader, f objfile.Symbol, path string) (*attunev1.Capture, error) {
	key := nameKey{reader.image.Version(), f.FileOffset, path}
	if known, ok := n.known[key]; ok {
		return known.capture, known.err
	}
	if n.known == nil || len(n.known) >= maxNames {
		n.known = make(map[nameKey]nameAnswer)
	}
	capture, err := reader.read(f, path)
	if err == nil || stays(err) {
		n.known[key] = nameAnswer{capture, err}
	}
	return capture, err
}

// stays says whether an error is the file's fault, rather than of the moment or of a
// package of debug information that may be installed yet.
func stays(err error) bool {
	return slices.ContainsFunc([]error{
		errNames, dwarfinfo.ErrNotFound, dwarfinfo.ErrUnsupported, dwarfinfo.ErrPath, objfile.ErrCorrupt,
	}, func(one error) bool { return errors.Is(err, one) })
}
