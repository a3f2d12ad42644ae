// SPDX-License-Identifier: Apache-2.0

// Package apparmor has the profiles of Attune's services. Its test has AppArmor's
// parser read them; whether the services work under them nothing here tries, since
// profiles bind on kernels with AppArmor switched on only.
package apparmor
