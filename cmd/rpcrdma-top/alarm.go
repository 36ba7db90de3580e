package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// thresholds reads the flags --alarm.
func thresholds(list []string) (monitor.Thresholds, error) {
	t := monitor.DefaultThresholds
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		a, known := monitor.ParseAlarm(name)
		if !ok || !known {
			var names []string
			for x := range monitor.Alarm(monitor.NumAlarms) {
				names = append(names, x.String())
			}
			return t, cli.Usagef("--alarm is NAME=VALUE with one of %s, not %q", strings.Join(names, ", "), s)
		}
		number, percent := strings.CutSuffix(value, "%")
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			return t, cli.Usagef("--alarm %s: %q is not a number or a share such as 1%%", name, value)
		}
		if percent {
			f /= 100
		}
		t[a] = f
	}
	return t, nil
}
