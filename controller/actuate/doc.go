// SPDX-License-Identifier: Apache-2.0

// Package actuate executes tuning actions in running processes and takes them
// back. It is the engine: what can be done it is given ([Kinds]), and it knows no
// library by name (docs/design/0047).
//
// An action goes through the same steps, whatever it is: it is planned (the
// symbol found, type and size checked, the old value read), written to the
// undo journal, executed at its safe point, read back, and answered with old
// and new value. The journal outlives the controller: Restore gives the
// processes of a controller that died their values back.
//
// An Actuator serialises what it does to one process and may be used from any
// number of goroutines.
package actuate
