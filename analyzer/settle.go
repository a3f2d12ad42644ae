// SPDX-License-Identifier: Apache-2.0

package analyzer

import "context"

// Settle ends the deciding: changes in processes that still run are undone, and
// the tunlets are told that the application has ended. Controllers may still
// deliver; Finish, which includes this, closes the channels. A controller in
// the same process is stopped between the two, so that its last figures count.
func (a *Analyzer) Settle(ctx context.Context) error { return a.session.Finish(ctx) }
