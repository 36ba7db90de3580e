// Package spent tells the processor time of a process: what a test may take does not depend on what else the machine
// has to do.
package spent

import "time"

var begun = time.Now()

// Time is how long this process has used processors so far, for itself and for the kernel, the garbage collector included.
// Where the system does not tell, it is how long the process has run.
func Time() time.Duration {
	if d, ok := processors(); ok {
		return d
	}
	return time.Since(begun)
}
