// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"fmt"
	"time"
)

// options say how the program lets itself be changed; see [sdk.OptionsOf].
type options struct {
	Variable string        `option:"variable" required:"true" doc:"name of the program's variable that says how many items it sends in one message"`
	Object   string        `option:"object" default:"*" doc:"base name of the program or library that has the variable; a pattern"`
	Size     int64         `option:"size" default:"4" choices:"1,2,4,8" doc:"bytes of the variable"`
	Present  int64         `option:"present" default:"1" min:"1" max:"1000000" doc:"its value as the program starts; a process with another one is left alone"`
	Most     int64         `option:"most" default:"256" min:"2" max:"1000000" doc:"greatest value that the program bears"`
	Latency  time.Duration `option:"latency" default:"0s" min:"0s" max:"1s" doc:"time that a message takes, where it is waited for; else what the kernel needs for it is measured"`
}

// check says why the options cannot be meant together.
func (o options) check() error {
	if o.Size == 1 && o.Most > 127 || o.Size == 2 && o.Most > 32767 {
		return fmt.Errorf("option most: %d does not fit into a variable of %d bytes", o.Most, o.Size)
	}
	return nil
}
