// SPDX-License-Identifier: Apache-2.0

package pointcomplete

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	"github.com/attune-hpc/attune/internal/symname"
)

// Most is how many names a shell is given at most.
const Most = 200

// Complete completes the value of --probe: first the object, then what
// is in it.
func Complete(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	rest, static := strings.CutPrefix(typed, "usdt:")
	object, name, hasObject := strings.Cut(rest, ":")
	switch {
	case !hasObject && static:
		return WithPrefix("usdt:", objects(object)), more
	case !hasObject:
		return append(objects(object), "usdt:"), more
	case static:
		return WithPrefix("usdt:"+object+":", staticProbesOf(object, name)), cobra.ShellCompDirectiveNoFileComp
	}
	return WithPrefix(object+":", functionsOf(object, name)), cobra.ShellCompDirectiveNoFileComp
}

// WithPrefix puts a text in front of each name.
func WithPrefix(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, prefix+name)
	}
	return out
}

// objects lists libraries and executable files of this directory whose name
// begins with a prefix, each with the colon that follows.
func objects(prefix string) []string {
	var names []string
	for _, dir := range append(libraryDirs(), ".") {
		found, err := filepath.Glob(filepath.Join(dir, symname.Escape(prefix)+"*"))
		if err != nil {
			continue
		}
		for _, path := range found {
			if dir == "." && executable(path) || strings.Contains(filepath.Base(path), ".so") {
				names = append(names, filepath.Base(path)+":")
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), Most)]
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// functionsOf lists functions of an object whose name begins with a prefix,
// without parameters where that leaves nothing open.
func functionsOf(object, prefix string) []string {
	file, err := openObject(object)
	if err != nil {
		return nil
	}
	defer file.Close()
	found, _ := file.Lookup(symname.Escape(prefix)+"*", objfile.LookupOptions{
		Kind: objfile.Function, Limit: Most,
	}) // an error comes with the first ones, or there are none
	overloads := make(map[string]int)
	for _, f := range found {
		overloads[symname.Function(f.Name)]++
	}
	var names []string
	for _, f := range found {
		name := symname.Function(f.Name)
		if overloads[name] > 1 {
			name = f.Display()
		}
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func staticProbesOf(object, prefix string) []string {
	file, err := openObject(object)
	if err != nil {
		return nil
	}
	defer file.Close()
	probes, err := usdt.Probes(file)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range probes {
		if name := p.Provider + ":" + p.Name; strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// openObject opens the file that an object's name probably stands for: a path,
// a file of this directory, a library, or a program.
func openObject(object string) (*objfile.File, error) {
	candidates := []string{object}
	if filepath.Base(object) == object {
		for _, dir := range libraryDirs() {
			candidates = append(candidates, filepath.Join(dir, object))
		}
		if program, err := exec.LookPath(object); err == nil {
			candidates = append(candidates, program)
		}
	}
	var err error
	for _, path := range candidates {
		var file *objfile.File
		if file, err = objfile.Open(path); err == nil {
			return file, nil
		}
	}
	return nil, err
}

// libraryDirs lists where the loader looks for libraries, without what a
// program's own run path adds.
func libraryDirs() []string {
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	configured, err := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	if err != nil {
		configured = nil
	}
	for _, path := range configured {
		dirs = append(dirs, directoriesIn(path)...)
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func directoriesIn(path string) (dirs []string) {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if dir := strings.TrimSpace(lines.Text()); filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Flag completes --probe, which the command has.
func Flag(cmd *cobra.Command) {
	if err := cmd.RegisterFlagCompletionFunc(settings.KeyProbe, Complete); err != nil {
		panic(err)
	}
}
