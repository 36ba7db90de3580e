package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/nearest"
	"github.com/rpcrdma/toolkit/internal/units"
)

// thresholds reads the flags --alarm, which change t.
func thresholds(t *monitor.Thresholds, list []string) error {
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return cli.Usagef("--alarm is NAME=VALUE with one of %s, not %q", strings.Join(alarmNames(), ", "), s)
		}
		if err := setThreshold(t, name, value); err != nil {
			return cli.Usagef("--alarm %s: %w", name, err)
		}
	}
	return nil
}

func alarmNames() (names []string) {
	for a := range monitor.Alarm(monitor.NumAlarms) {
		names = append(names, a.String())
	}
	return names
}

// partsOfAll are the alarms whose threshold is a share, from 0 to 1.
var partsOfAll = []monitor.Alarm{monitor.AlarmAgain, monitor.AlarmMarked, monitor.AlarmStalled, monitor.AlarmErrors}

// setThreshold reads one threshold.
func setThreshold(t *monitor.Thresholds, name, value string) error {
	a, known := monitor.ParseAlarm(name)
	if !known {
		hint := ""
		if near := nearest.Names(name, alarmNames()); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("there is no such alarm%s (%s)", hint, strings.Join(alarmNames(), ", "))
	}
	if a == monitor.AlarmP99 {
		d, err := cli.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("%q: %w", value, err)
		}
		t[a] = d.Seconds()
		return nil
	}
	number, percent := strings.CutSuffix(value, "%")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return fmt.Errorf("%q is not a number or a share such as 1%%", value)
	}
	if percent {
		f /= 100
	}
	switch share := slices.Contains(partsOfAll, a); {
	case share && f > 1:
		return fmt.Errorf("%q is more than all, and would never be reached: write 2%% or 0.02 for two in a hundred", value)
	case !share && percent:
		return fmt.Errorf("%q: it is a number, not a share", value)
	}
	t[a] = f
	return nil
}

// errAlarm says that a threshold was passed; what is to be said of it has been said.
var errAlarm = fmt.Errorf("an alarm was raised")

// raised tells which alarms there were, and whether there were any.
func raised(w io.Writer, s *monitor.Snapshot) bool {
	any := false
	for a, r := range s.Raised {
		if r.Intervals == 0 {
			continue
		}
		any = true
		fmt.Fprintf(w, "rpcrdma-top: alarm %s in %s of %s, first at %s\n",
			monitor.Alarm(a), units.Plural(r.Intervals, "interval"), s.Interval, clockText(r.First))
	}
	return any
}

// ringer decides when the bell rings: when there is an alarm that was not there before.
type ringer struct{ on map[string]bool }

// news reports whether a snapshot has an alarm that the one before had not.
func (r *ringer) news(s *monitor.Snapshot) (ring bool) {
	now := make(map[string]bool)
	for _, a := range s.Over {
		now[a.String()] = true
	}
	for i := range s.Fabric { // those with alarms come first
		x := &s.Fabric[i]
		if len(x.Alarms) == 0 {
			break
		}
		for _, a := range x.Alarms {
			now[a.String()+" "+strconv.Itoa(x.ID)] = true
		}
	}
	for name := range now {
		ring = ring || !r.on[name]
	}
	r.on = now
	return ring
}

// alarmText names the alarms of the latest interval; at the end of the input those of all intervals.
func alarmText(s *monitor.Snapshot) string {
	var names []string
	for a := range monitor.Alarm(monitor.NumAlarms) {
		if s.Ended && s.Raised[a].Intervals > 0 || !s.Ended && slices.Contains(s.Over, a) {
			names = append(names, a.String())
		}
	}
	return strings.Join(names, " ")
}
