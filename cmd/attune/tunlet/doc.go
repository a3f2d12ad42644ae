// SPDX-License-Identifier: Apache-2.0

// Package tunlet is `attune tunlet`: tunlets made, shown, tried, tested, installed.
package tunlet
