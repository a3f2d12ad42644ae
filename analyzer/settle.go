// SPDX-License-Identifier: Apache-2.0

package analyzer

import "context"

// Settle ends the deciding: changes in processes that still run are undone.
// Controllers may still deliver; Finish, which includes this, tells the tunlets
// that the application has ended and closes the channels. A controller in the
// same process is stopped between the two, so that the tunlets and the report
// get its last figures.
func (a *Analyzer) Settle(ctx context.Context) error { return a.session.Settle(ctx) }
