//go:build !unix

package verbstest

import "time"

func spent() (time.Duration, bool) { return 0, false }
