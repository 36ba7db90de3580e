//go:build !verbs || !cgo || !linux

package rdma

import (
	"errors"
	"strings"
	"testing"
)

func TestAbsent(t *testing.T) {
	if _, err := New(Options{}); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("%v, want %v", err, ErrNotBuilt)
	}
	r := Probe()
	if r.Built || len(r.Devices) > 0 || !strings.Contains(r.Missing, "-tags verbs") {
		t.Errorf("%+v", r)
	}
}
