//go:build !linux

package bench

import (
	"errors"
	"time"
)

// ProcessCPU needs Linux.
func ProcessCPU(int) (time.Duration, error) {
	return 0, errors.New("the processor time of another process is not measured on this system")
}
