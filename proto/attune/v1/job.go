// SPDX-License-Identifier: Apache-2.0

package attunev1

// Key returns the job in one word, by which executions are told apart:
// "slurm/1234.0", "session/4711". It is "" for nil.
func (x *Job) Key() string {
	if x == nil {
		return ""
	}
	key := x.GetKind() + "/" + x.GetId()
	if step := x.GetStep(); step != "" {
		key += "." + step
	}
	return key
}
