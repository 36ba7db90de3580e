//go:build !linux

package link

import "time"

func nap(d time.Duration) { time.Sleep(d) }
