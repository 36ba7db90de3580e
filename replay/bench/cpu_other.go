//go:build !unix

package bench

import (
	"errors"
	"time"
)

func ownCPU() (time.Duration, error) {
	return 0, errors.New("processor time is not measured on this system")
}
