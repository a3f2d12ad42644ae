// SPDX-License-Identifier: Apache-2.0

// Package action has the actions on what programs consist of: variables that are set,
// functions that are called, replaced, left out, called beside others or given other
// parameters, and libraries that are loaded. Each has a file with what people are told
// of it, its plan, and its undo.
package action

import "github.com/attune-hpc/attune/controller/actuate"

// Kinds returns all of them.
func Kinds() actuate.Kinds {
	return actuate.Kinds{
		Actions: []actuate.Kind{setKind(), callKind(), loadKind(), replaceKind(), removeKind(), paramKind(), insertKind()},
		Undos:   []func() actuate.Undo{actuate.Empty[loadedLibrary], actuate.Empty[patchedFunction], actuate.Empty[madeCall]},
	}
}
