// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// RefuseRoot is why a service that has a user of its own is neither started nor checked by
// root; nil: somebody else does. Root may read what that user may not, and takes no key that
// is that user's. To become the user by itself the service would have to be root first, with
// the environment of whoever has started it.
func RefuseRoot(what, user, unit, command string, check bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	by := fmt.Sprintf("setpriv --reuid=%[1]s --regid=%[1]s --init-groups attune %s", user, command)
	if check {
		return exitcode.UsageError(fmt.Errorf("the settings of %s are checked as its user %s, who may not read what root may", what, user), "write: "+by+" --check-config")
	}
	return exitcode.UsageError(errors.New(what+" does not run as root"),
		"`systemctl start "+unit+"` starts it as user "+user+", and so does `"+by+"`; its directories have to be that user's")
}
