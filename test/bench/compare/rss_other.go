//go:build !linux

package main

import "os"

// maxRSS is not known: the unit differs from system to system.
func maxRSS(*os.ProcessState) int64 { return 0 }
