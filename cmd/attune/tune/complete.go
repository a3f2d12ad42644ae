// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/pointcomplete"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/symname"
)

// completeVariables and completeFunctions complete OBJECT:SYMBOL by what the
// first process has mapped.
func completeVariables(pids []int, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(word, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := completeSymbols(pids[0], word, objfile.Variable, objfile.ThreadLocal)
	if !strings.Contains(word, ":") {
		return names, directive
	}
	for i := range names {
		names[i] += "="
	}
	return names, directive | cobra.ShellCompDirectiveNoSpace
}

func completeFunctions(pids []int, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeSymbols(pids[0], word, objfile.Function)
}

func completeSymbols(pid int, word string, kinds ...objfile.SymbolKind) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	images, err := objfile.Images(pid)
	if err != nil {
		return nil, none
	}
	object, prefix, hasObject := strings.Cut(word, ":")
	var names []string
	for _, image := range images {
		switch {
		case !hasObject && strings.HasPrefix(image.Name(), object):
			names = append(names, image.Name()+":")
		case hasObject && image.Name() == object:
			names = append(names, pointcomplete.WithPrefix(object+":", symbolsOf(image, prefix, kinds))...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !hasObject {
		return names, none | cobra.ShellCompDirectiveNoSpace
	}
	return names[:min(len(names), pointcomplete.Most)], none
}

// symbolsOf lists symbols of an object whose name begins with a prefix.
func symbolsOf(image objfile.Image, prefix string, kinds []objfile.SymbolKind) (names []string) {
	file, err := image.Open()
	if err != nil {
		return nil
	}
	defer file.Close()
	for _, kind := range kinds {
		found, _ := file.Lookup(symname.Escape(prefix)+"*", objfile.LookupOptions{
			Kind: kind, Limit: pointcomplete.Most,
		}) // an error comes with the first ones, or there are none
		for _, f := range found {
			if name := symname.Function(f.Name); strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}
