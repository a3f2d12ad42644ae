// SPDX-License-Identifier: Apache-2.0

// Package objective is what the owner of an application wants to be better, as written
// behind --objective, and measures it where that needs neither Analyzer nor controller: in files
// that the application writes, and by a command of the owner's. The grammar stands in
// docs/reference/objective.md, the reasons in docs/design/0071.
//
// Nothing here stands between the application and its output: files are opened
// for reading, beside it. A Spec is a value; a Source belongs to the goroutine that runs it.
package objective
