package main

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

func TestThresholds(t *testing.T) {
	got, err := thresholds([]string{"again=2%", "cnp=0", "stalled=0.5"})
	want := monitor.DefaultThresholds
	want[monitor.AlarmAgain], want[monitor.AlarmCNP], want[monitor.AlarmStalled] = 0.02, 0, 0.5
	if err != nil || got != want {
		t.Error(got, err)
	}
	for _, s := range []string{"again", "again=", "again=x", "again=-1", "again=NaN", "again=Inf", "lost=1", "=1", ""} {
		if _, err := thresholds([]string{s}); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
