// SPDX-License-Identifier: Apache-2.0

package actuate

// PathOf returns the file of a journal.
func PathOf(j *Journal) string { return j.file.Name() }

// LetGo closes a journal as the kernel does when its controller is killed.
func LetGo(j *Journal) { _ = j.file.Close() }

// SetStep has step called with the op before and after each line of a journal is written.
func SetStep(j *Journal, step func(op string)) { j.step = step }

// Apart returns changes in groups that are undone one beside the other.
func Apart(a *Actuator, ids []string) [][]string { return a.force.apart(ids) }
