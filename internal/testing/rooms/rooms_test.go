// SPDX-License-Identifier: Apache-2.0

package rooms

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines   = 250
	maxMethods = 25
)

// TestRooms: in these packages each file is short, each type has few methods, and
// the files have an order: none needs another one that needs it, however far around.
func TestRooms(t *testing.T) {
	for _, dir := range []string{
		"analyzer", "analyzer/channel", "analyzer/core", "analyzer/core/trial", "analyzer/fold", "analyzer/probes",
		"analyzer/recorder", "analyzer/service", "analyzer/session", "analyzer/session/calls", "controller",
		"controller/accountant", "controller/actuate", "controller/admit", "controller/bpf/taskaccount", "controller/bpf/uprobe", "controller/change", "controller/child", "controller/discover",
		"controller/inject", "controller/inject/breakpoint", "controller/inject/tracer", "controller/link",
		"controller/member", "controller/meter", "controller/node", "controller/patch", "controller/patch/flow",
		"controller/probe", "controller/probe/symbols", "controller/shm", "controller/sites", "controller/sites/object",
		"controller/source", "controller/track", "internal/account", "internal/bounded", "internal/confine", "internal/objfile", "internal/readers",
	} {
		t.Run(dir, func(t *testing.T) {
			r := read(t, filepath.Join("../../..", dir))
			for name, lines := range r.lines {
				if lines > maxLines {
					t.Errorf("%s has %d lines, at most %d", name, lines, maxLines)
				}
			}
			for name, methods := range r.methods {
				if methods > maxMethods {
					t.Errorf("type %s has %d methods, at most %d", name, methods, maxMethods)
				}
			}
			if circle := r.circle(); circle != nil {
				t.Errorf("files need each other: %s", strings.Join(circle, " → "))
			}
		})
	}
}

// TestMethods: no type anywhere has many methods.
func TestMethods(t *testing.T) {
	list, err := exec.Command("git", "-C", "../../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := make(map[string]bool)
	for name := range strings.Lines(string(list)) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata/") {
			dirs[filepath.Dir(name)] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		for name, methods := range read(t, filepath.Join("../../..", dir)).methods {
			if methods > maxMethods {
				t.Errorf("%s: type %s has %d methods, at most %d", dir, name, methods, maxMethods)
			}
		}
	}
}

// TestRoomsAreMeasured: what is measured is there to be found.
func TestRoomsAreMeasured(t *testing.T) {
	r := read(t, "testdata")
	if circle := r.circle(); len(circle) != 4 || circle[0] != circle[3] {
		t.Errorf("circle %v, want one of three files", circle)
	}
	if r.methods["thing"] != 2 {
		t.Errorf("methods %v, want two of thing", r.methods)
	}
	if _, counted := r.lines["generated.go"]; counted || r.lines["a.go"] != 9 {
		t.Errorf("lines %v, want 9 of a.go and none of generated.go", r.lines)
	}
}

// room is what a package consists of.
type room struct {
	lines   map[string]int             // by file
	methods map[string]int             // by type
	needs   map[string]map[string]bool // file by file: it uses a name that the other declares
}

// read looks at a package's files. What they import is not looked at: nothing in it
// can name anything here.
func read(t *testing.T, dir string) *room {
	t.Helper()
	r := &room{lines: make(map[string]int), methods: make(map[string]int), needs: make(map[string]map[string]bool)}
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		if !ast.IsGenerated(file) { // nobody writes those
			r.lines[filepath.Base(path)] = bytes.Count(source, []byte("\n"))
		}
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, fset, files, info) // its errors are about what is imported
	file := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	for _, o := range info.Defs {
		if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil && r.lines[file(f.Pos())] > 0 {
			r.methods[strings.TrimPrefix(types.TypeString(f.Signature().Recv().Type(), types.RelativeTo(pkg)), "*")]++
		}
	}
	for id, o := range info.Uses {
		f, isFunc := o.(*types.Func)
		isMethod := isFunc && f.Signature().Recv() != nil
		if o.Pkg() != pkg || o.Parent() != pkg.Scope() && !isMethod {
			continue // fields go with their type
		}
		if from, to := file(id.Pos()), file(o.Pos()); from != to {
			if r.needs[from] == nil {
				r.needs[from] = make(map[string]bool)
			}
			r.needs[from][to] = true
		}
	}
	return r
}

// nothing imports no package.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// circle returns files of which each needs the next one, the last the first; nil
// where there are none.
func (r *room) circle() []string {
	done := make(map[string]bool)
	var visit func(file string, way []string) []string
	visit = func(file string, way []string) []string {
		if i := slices.Index(way, file); i >= 0 {
			return append(way[i:], file)
		}
		if done[file] {
			return nil
		}
		for _, next := range slices.Sorted(maps.Keys(r.needs[file])) {
			if circle := visit(next, append(slices.Clone(way), file)); circle != nil {
				return circle
			}
		}
		done[file] = true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(r.needs)) {
		if circle := visit(file, nil); circle != nil {
			return circle
		}
	}
	return nil
}
