package main

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

func TestThresholds(t *testing.T) {
	got := monitor.DefaultThresholds
	err := thresholds(&got, []string{"marked=1", "again=2%", "cnp=0", "stalled=0.5", "p99=100ms", "errors=1%", "stuck=3"})
	want := monitor.DefaultThresholds
	want[monitor.AlarmAgain], want[monitor.AlarmCNP], want[monitor.AlarmStalled] = 0.02, 0, 0.5
	want[monitor.AlarmP99], want[monitor.AlarmErrors], want[monitor.AlarmStuck] = 0.1, 0.01, 3
	want[monitor.AlarmMarked] = 1
	if err != nil || got != want {
		t.Error(got, err)
	}
	for _, s := range []string{"again", "again=", "again=x", "again=-1", "again=NaN", "again=Inf", "lost=1", "=1", "", "p99=x", "p99=-1s",
		"again=2", "again=101%", "errors=1.01", "marked=200%", "stalled=50", "stuck=3%", "cnp=1%"} {
		if err := thresholds(&got, []string{s}); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
